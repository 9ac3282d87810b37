"""Run a kernel from its source, in a part of Python in which nothing but its arrays is within reach.

A kernel has loops, conditions, functions of its own, arithmetic and the functions below, and no attribute but those of
`math`. Loops and arithmetic go through a `Machine`, which counts them. So the judge can run the source of a stranger,
and knows what it loads and computes.
"""

from __future__ import annotations

import ast
import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

MOST_TEXT = 20_000  # characters of a source
MOST_STEPS = 20_000  # iterations, operations and calls of a run: a hundred times what the exercise needs
LARGEST = 1 << 20  # of a whole number that is computed, and of the length of a list or range
MATH = (
    "ceil", "copysign", "exp", "expm1", "fabs", "floor", "fmod", "inf", "isfinite", "isinf", "isnan", "log", "log1p",
    "nan", "sqrt", "tanh",
)  # fmt: skip
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod,
}  # fmt: skip
ALLOWED = (
    ast.Module, ast.FunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign,
    ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Import, ast.ImportFrom,
    ast.alias, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.keyword, ast.Starred, ast.Name,
    ast.Constant, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.ListComp, ast.GeneratorExp, ast.comprehension,
    ast.expr_context, ast.boolop, ast.cmpop, ast.operator, ast.unaryop,
)  # fmt: skip


class NotRunError(Exception):
    """A source that was not run to its end; the text says why."""


class Array(Sequence[float]):
    """An array of the kernel's; it counts how often each element is loaded."""

    def __init__(self, numbers: list[float]) -> None:
        self.numbers, self.loads = numbers, Counter[int]()

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        found = self.numbers[index]
        places = range(len(self))[index]
        self.loads.update([places] if isinstance(places, int) else places)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        places = range(len(self))[index]
        for place, each in [(places, value)] if isinstance(places, int) else zip(places, value, strict=True):
            self.numbers[place] = float(each)


class Machine:
    """Counts the steps of a run, and its operations on floats."""

    def __init__(self) -> None:
        self.steps = self.operations = 0
        math_ = SimpleNamespace(**{name: self._counting(getattr(math, name)) for name in MATH})
        plain = (enumerate, float, int, len, list, map, next, reversed, tuple, zip)
        self.names: dict[str, Any] = {each.__name__: each for each in plain}
        self.names |= {each.__name__: self._counting(each) for each in (abs, max, min, sum)}
        self.names |= {"range": self._range, "iter": lambda values: iter(values), "math": math_}
        self.names |= {"__import__": lambda *_: math_, "_step": self.step, "_operation": self.operation}

    def step(self, value: Any = None) -> Any:
        """Count a step, and hand a value on."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise NotRunError(f"it was stopped after {MOST_STEPS} steps: does a loop never end?")
        return value

    def operation(self, name: str, a: Any, b: Any) -> Any:
        """The value of an operator."""
        lengths = [len(each) for each in (a, b) if isinstance(each, (list, tuple, str))]
        if lengths and sum(lengths) * max(1, *(each for each in (a, b, 1) if isinstance(each, int))) > LARGEST:
            raise NotRunError(f"it makes a list of more than {LARGEST} elements")
        return self._counting(OPERATORS[name])(a, b)

    def _counting(self, function: Any) -> Any:
        """A function that counts as an operation where it is called with a float; a number is what it is."""

        def counted(*operands: Any, **named: Any) -> Any:
            self.step()
            self.operations += any(isinstance(each, float) for each in operands)
            found = function(*operands, **named)
            if isinstance(found, int) and abs(found) > LARGEST:
                raise NotRunError(f"it computes a whole number of more than {LARGEST}")
            return found

        return counted if callable(function) else function

    @staticmethod
    def _range(*arguments: int) -> range:
        found = range(*arguments)
        if max(abs(found.start), abs(found.stop)) > LARGEST:
            raise NotRunError(f"it loops over more than {LARGEST} numbers")
        return found

    def run(self, source: str, arrays: Sequence[Array]) -> None:
        """Define what a source defines, and call its `kernel` on arrays.

        Raises:
            NotRunError: if that is impossible, or an exception ends it.
        """
        if len(source) > MOST_TEXT:
            raise NotRunError(f"the source has {len(source)} characters, and {MOST_TEXT} are many for such a graph")
        try:
            tree = ast.parse(source)
            for node in ast.walk(tree):
                if foreign := _foreign(node):
                    own = "its parameters, `math`, and functions such as `len` and `max`"
                    raise NotRunError(f"the source uses {foreign}; a kernel has {own}")
            code = compile(ast.fix_missing_locations(_Counting().visit(tree)), "<generated>", "exec")
            names: dict[str, Any] = {"__builtins__": self.names}
            exec(code, names)
            if not callable(names.get("kernel")):
                raise NotRunError("the source defines no function `kernel`")
            names["kernel"](*arrays)
        except NotRunError:
            raise
        except Exception as error:
            raise NotRunError(f"it raises {type(error).__name__}: {str(error).partition(' (<')[0]}") from None


def _foreign(node: ast.AST) -> str:
    """What a kernel may not have, if a node is that: with more, something else could compute the numbers."""
    match node:
        case ast.Name(name) | ast.FunctionDef(name) | ast.arg(name) | ast.alias(_, str(name)) if (
            name.strip("_") != name
        ):
            return "" if name == "_" else name
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op).__name__ not in OPERATORS:
            return f"`{ast.unparse(node)}`"
        case ast.Attribute(_, name):
            return "" if name in MATH else ast.unparse(node)
        case ast.Import([ast.alias("math")]) | ast.ImportFrom("math"):
            return ""
        case ast.Import(names):
            return f"import {names[0].name}"
        case ast.ImportFrom(module):
            return f"from {module} import"
    return "" if isinstance(node, ALLOWED) else f"`{ast.unparse(node)}`"


class _Counting(ast.NodeTransformer):
    """Sends iterations and operators through the machine."""

    def visit_For(self, node: ast.For | ast.While) -> Any:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("_step")))
        return node

    def visit_While(self, node: ast.While) -> Any:
        return self.visit_For(node)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        node.ifs.insert(0, _call("_step", ast.Constant(True)))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return _call("_operation", ast.Constant(type(node.op).__name__), node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        return self.visit(ast.Assign([node.target], ast.BinOp(before, node.op, node.value)))


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
