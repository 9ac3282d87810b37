"""Writes the type stubs of what is put together when the package is imported: ``make stubs``.

Two files need one. `minitorch/__init__.py` takes the public functions from wherever they are declared, and
`minitorch/methods.py` has classes whose methods are installed from outside. Both stubs are written from the objects
that are there after ``import minitorch``: names, parameters, defaults, annotations, and the first line of each
docstring. A package that loads its files when their names are used has a stub that imports them.
`tests/project/test_stubs.py` compares the files with what this program writes, and with the package (``stubtest``).

Aliases in annotations are written out, so that an editor shows ``int | Sequence[int] | None`` and not ``Dims``; only
`Operand` and `Number`, which occur everywhere, stay.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import minitorch
from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.functional import operands
from minitorch.methods import TensorMethods, install
from minitorch.packages import BESIDE

PACKAGE = Path(minitorch.__file__).parent
WRITTEN_BY = "# Written by `make stubs` from the package itself; do not edit."

# Values that a stub can repeat as defaults.
PLAIN = (bool, int, float, str, type(None))


class Stub:
    """One stub: lines, and the imports that they turn out to need.

    Args:
        module: the module that it is for.
        taken: names that the stub gives a meaning of its own, so that ``builtins.`` goes before Python's.
    """

    def __init__(self, module: types.ModuleType, taken: Iterable[str]) -> None:
        self.module = module
        self.taken = frozenset(taken)
        self.imports: set[str] = set()

    def named(self, kind: type) -> str:
        """A class as an annotation names it."""
        name = kind.__name__
        if kind.__module__ == "builtins":
            if name not in self.taken:
                return name
            self.imports.add("import builtins")
            return f"builtins.{name}"
        if kind.__module__ == "numpy":
            self.imports.add("import numpy as np")
            return f"np.{name}"
        if kind.__module__ != self.module.__name__:
            self.imports.add(f"from {relative(kind.__module__)} import {name}")
        return name

    def annotation(self, annotation: Any) -> str:
        """A type as it is written."""
        if annotation is None or annotation is types.NoneType:
            return "None"
        if annotation is Ellipsis:
            return "..."
        if annotation is Any:
            self.imports.add("from typing import Any")
            return "Any"
        if isinstance(annotation, list):
            return f"[{', '.join(map(self.annotation, annotation))}]"
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (types.UnionType, typing.Union):
            names, rest = self.aliases(arguments)
            return " | ".join([*names, *map(self.annotation, rest)])
        if origin is not None:
            return f"{self.named(origin)}[{', '.join(map(self.annotation, arguments))}]"
        if isinstance(annotation, type):
            return self.named(annotation)
        raise TypeError(f"no way to write the annotation {annotation!r}; teach tools/stubs.py")

    def aliases(self, alternatives: tuple[Any, ...]) -> tuple[list[str], list[Any]]:
        """The names for parts of a union that have one, and the other parts."""
        names, rest = [], [*alternatives]
        for name in ("Operand", "Number"):
            parts = typing.get_args(getattr(operands, name))
            if set(parts) <= set(rest):
                self.imports.add(f"from {relative(operands.__name__)} import {name}")
                names.append(name)
                rest = [each for each in rest if each not in parts]
        return names, rest

    def function(self, name: str, function: Callable[..., Any], in_class: bool = False) -> Iterator[str]:
        """A function or method: its signature, and the first line of its docstring."""
        function = inspect.unwrap(function, stop=lambda each: hasattr(each, "__signature__"))
        signature = inspect.signature(function)
        names = visible(inspect.unwrap(function))
        parameters = [
            each.replace(annotation=evaluated(each.annotation, names)) for each in signature.parameters.values()
        ]
        if in_class:
            parameters[0] = parameters[0].replace(name="self", annotation=inspect.Parameter.empty)
        if name.startswith("__i") and len(parameters) > 1:  # as `__pow__` names it, of which `__ipow__` is one kind
            parameters[1] = parameters[1].replace(name="other")
        result = self.annotation(evaluated(signature.return_annotation, names))
        ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
        yield f"def {name}({', '.join(self.parameters(parameters))}) -> {result}:{ignored}"
        yield from self.body(None if name.startswith("__") else function.__doc__)

    def parameters(self, parameters: list[inspect.Parameter]) -> Iterator[str]:
        """The parameters of a function, with the marks between them."""
        before = None
        for each in parameters:
            if each.kind is each.KEYWORD_ONLY and before not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
                yield "*"
            before = each.kind
            text = "*" * (each.kind is each.VAR_POSITIONAL) + "**" * (each.kind is each.VAR_KEYWORD) + each.name
            if each.annotation is not each.empty:
                text += f": {self.annotation(each.annotation)}"
            if each.default is not each.empty:
                text += f" = {each.default!r}" if isinstance(each.default, PLAIN) else " = ..."
            yield text

    def attribute(self, name: str, made: property) -> Iterator[str]:
        """A property, with its setter if it has one."""
        assert made.fget is not None
        signature = inspect.signature(made.fget)
        kind = self.annotation(evaluated(signature.return_annotation, visible(made.fget)))
        yield "@property"
        yield f"def {name}(self) -> {kind}:"
        yield from self.body(made.__doc__)
        if made.fset is not None:
            value = list(inspect.signature(made.fset).parameters.values())[1]
            kind = self.annotation(evaluated(value.annotation, visible(made.fset)))
            yield f"@{name}.setter"
            yield f"def {name}(self, {value.name}: {kind}) -> None: ..."

    @staticmethod
    def body(doc: str | None) -> Iterator[str]:
        """The first line of a docstring, or dots."""
        if doc is None:
            yield "    ..."
        else:
            line = inspect.cleandoc(doc).splitlines()[0].replace("\\", "\\\\")
            yield f'    """{line}"""'

    def text(self, lines: Iterable[str]) -> str:
        """The whole stub, formatted."""
        body = [*lines]
        needed = [each for each in self.imports if f"{each} as {each.split()[-1]}" not in self.imports]
        head = [WRITTEN_BY, f'"""{(self.module.__doc__ or "").splitlines()[0]}"""', *sorted(needed)]
        return formatted("\n".join([*head, *body]) + "\n")


def relative(module: str) -> str:
    """A module as the package imports it: relative if it is a part of it."""
    return module.removeprefix("minitorch") if module.startswith("minitorch.") else module


def visible(function: Callable[..., Any]) -> dict[str, Any]:
    """The names that annotations of a function may use, those imported for type checkers included."""
    module = sys.modules[function.__module__]
    names = {**vars(builtins), **vars(module)}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom):
                    source = importlib.import_module("." * each.level + (each.module or ""), module.__package__)
                    names |= {alias.asname or alias.name: getattr(source, alias.name) for alias in each.names}
    # A public function may have the name of a type, such as `bool`; in annotations the type is meant.
    return {name: vars(builtins)[name] if is_type_of_python(name) else value for name, value in names.items()}


def is_type_of_python(name: str) -> bool:
    """Whether a name is one of Python's own types."""
    return isinstance(vars(builtins).get(name), type)


def evaluated(annotation: Any, names: dict[str, Any]) -> Any:
    """The type that an annotation stands for."""
    if annotation is inspect.Parameter.empty:
        raise TypeError("a function without annotations")
    return eval(annotation, names) if isinstance(annotation, str) else annotation


def formatted(text: str) -> str:
    """A stub as ruff writes it, with its imports in order."""
    for command in (["check", "--fix", "--quiet", "--select", "I,RUF022"], ["format", "--quiet"]):
        arguments = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(PACKAGE / "stub.pyi"), "-"]
        text = subprocess.run(arguments, input=text, capture_output=True, text=True, check=True, cwd=PACKAGE).stdout
    return text


def methods() -> str:
    """The stub of `minitorch.methods`: its classes as they were filled, and `install`."""
    stub = Stub(sys.modules[TensorMethods.__module__], vars(TensorMethods))
    lines = [*filled(stub, TensorMethods)]
    outside = Stub(stub.module, ())
    lines += outside.function("install", install)
    stub.imports |= outside.imports
    return stub.text(lines)


def filled(stub: Stub, made: type) -> Iterator[str]:
    """A class whose methods were installed from outside."""
    own = {name: value for name, value in vars(made).items() if callable(value) or isinstance(value, property)}
    bases = [stub.named(base) for base in made.__bases__ if base is not object]
    yield f"class {made.__name__}{f'({bases[0]})' if bases else ''}:"
    yield from stub.body(made.__doc__)
    yield "    __slots__ = ()"
    # First what Python itself calls, then what is read, then what is called.
    for name in sorted(own, key=lambda name: (not name.startswith("_"), not isinstance(own[name], property), name)):
        value = own[name]
        lines = (
            stub.attribute(name, value) if isinstance(value, property) else stub.function(name, value, in_class=True)
        )
        yield from (f"    {line}" for line in lines)


def package() -> str:
    """The stub of `minitorch`: each public name is imported from where it is declared, if it is declared anywhere."""
    names = minitorch.__all__
    stub = Stub(minitorch, names)
    lines = [f"__version__: {stub.named(str)}"]
    for name in names:
        value = getattr(minitorch, name)
        if inspect.ismodule(value):
            package, _, module = value.__name__.rpartition(".")
            source = "." if package == "minitorch" else package
            stub.imports.add(f"from {source} import {module} as {name}" if source else f"import {module} as {name}")
        elif isinstance(value, DType):
            declared = next(each for each, dtype in vars(dtypes).items() if dtype is value)
            stub.imports.add(f"from .dtypes import {declared} as {name}")
        elif not callable(value):
            lines.append(f"{name}: {stub.named(type(value))}")
        elif (home := declared_in(value)) is not None:
            stub.imports.add(f"from {relative(home)} import {inspect.unwrap(value).__name__} as {name}")
        else:
            lines += stub.function(name, value)
    return stub.text([*lines, "", f"__all__ = {sorted(names)!r}"])


def declared_in(value: Any) -> str | None:
    """The module with a ``def`` or ``class`` of this object; None for one that another function has made."""
    if hasattr(value, "__signature__"):  # the parameters are not those of the ``def``
        return None
    value = inspect.unwrap(value)
    home = value.__module__
    tree = ast.parse(inspect.getsource(sys.modules[home]))
    return home if any(getattr(node, "name", None) == value.__name__ for node in tree.body) else None


def beside(name: str) -> str:
    """The stub of a package beside the engine under its public name."""
    return f"from {BESIDE[name]} import *  # noqa: F403\n"


def later(name: str) -> str:
    """The stub of a package of the engine that takes its names from files when they are first used."""
    module = importlib.import_module(name)
    lines = []
    for public, home in module._HOMES.items():
        source = home.removeprefix(name) if home.startswith(f"{name}.") else home
        lines.append(f"from {'.' if source == f'.{public}' else source} import {public} as {public}")
    return Stub(module, ()).text([*lines, f"__all__ = {module.__all__!r}"])


STUBS = {PACKAGE / "__init__.pyi": package, PACKAGE / "methods.pyi": methods}
for each in ("nn", "nn.functional"):
    STUBS[PACKAGE.joinpath(*each.split("."), "__init__.pyi")] = partial(later, f"minitorch.{each}")
for each in BESIDE:
    place = PACKAGE / each.replace(".", "/")
    has_modules = any(other.startswith(f"{each}.") for other in BESIDE)
    STUBS[place / "__init__.pyi" if has_modules else place.with_suffix(".pyi")] = partial(beside, each)

if __name__ == "__main__":
    for path, written in STUBS.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(written(), encoding="utf-8")
