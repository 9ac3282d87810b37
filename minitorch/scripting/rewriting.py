"""Rewriting of a function's source: jumps become a variable, and statements of control flow become calls.

Three steps, each on Python's own syntax tree (`ast`), as AutoGraph does (Moldovan et al. 2018, arXiv:1810.08061):

1. `Jumps`: ``return``, ``break`` and ``continue`` become assignments to ``jump__``, and what follows is under
   ``if jump__ == 0``. A block then has one way in and one way out.
2. `Statements`: ``if``, ``while`` and ``for`` become calls of `minitorch.scripting.running`, their blocks functions
   that share the variables (``nonlocal``). Liveness analysis says which variables are read afterwards.
3. `Expressions`: ``and``, ``or``, ``not``, ``a if t else b`` and chained comparisons become calls, which take their
   later operands as functions.

Every new node has the line of the statement that it replaces.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

HELPERS, JUMP, RESULT, ITEM = "script__", "jump__", "result__", "item__"
CONTINUE, BREAK, RETURN = 1, 2, 3  # values of `jump__`; 0 is none

Block = list[ast.stmt]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
SUSPENDS = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)


class RewritingError(Exception):
    """The error for a statement that has no other form, with its line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and those in them, without the bodies of functions and classes."""
    pending = list(nodes)
    for node in pending:  # the list grows during the loop
        yield node
        if not isinstance(node, SCOPES):
            pending += ast.iter_child_nodes(node)


def blocks(statement: ast.AST) -> Iterator[tuple[Any, str]]:
    """Yield where a statement holds blocks: an owner and a field, as in ``owner.body``."""
    for owner in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(owner, field, None), list) and not isinstance(owner, SCOPES):
                yield owner, field


def code(text: str, at: Any) -> Block:
    """Return the statements of a text, at the line of another node."""
    made = ast.parse(text).body
    for statement in made:
        for node in ast.walk(statement):
            ast.copy_location(node, at)
            node.end_lineno = at.lineno  # type: ignore[attr-defined]  # a call's line is the last of its function
    return made


def expression(text: str, at: ast.AST) -> Any:
    """Return the expression of a text, at the line of another node."""
    (made,) = code(text, at)
    return made.value  # type: ignore[attr-defined]


def call(name: str, at: ast.AST, *operands: ast.expr) -> ast.Call:
    """Return a call of a helper."""
    made: ast.Call = expression(f"{HELPERS}.{name}()", at)
    made.args = list(operands)
    return made


# Jumps ----------------------------------------------------------------------------------------------------


class Jumps:
    """Makes the jumps of a function assignments to `jump__`.

    Attributes:
        is_needed: whether there are any.
        has_returns: whether a ``return`` is inside of another statement; then all of them are replaced.
    """

    def __init__(self, body: Block) -> None:
        inner = [node for statement in body for owner, field in blocks(statement) for node in getattr(owner, field)]
        self.has_returns = any(isinstance(node, ast.Return) for node in within(inner))
        self.is_needed = any(isinstance(node, (ast.Return, ast.Break, ast.Continue)) for node in within(inner))

    def escape(self, nodes: Iterable[ast.AST], in_loop: bool = False) -> bool:
        """Return whether a jump leaves some nodes."""
        for node in nodes:
            if isinstance(node, (ast.Break, ast.Continue)) and not in_loop:
                return True
            if isinstance(node, ast.Return) and self.has_returns:
                return True
            if isinstance(node, LOOPS):
                if self.escape(node.body, True) or self.escape(node.orelse, in_loop):
                    return True
            elif not isinstance(node, SCOPES) and self.escape(ast.iter_child_nodes(node), in_loop):
                return True
        return False

    def always(self, block: Block) -> bool:
        """Return whether a block ends with a jump, on all of its ways."""
        last = block[-1] if block else None
        if isinstance(last, ast.If):
            return self.always(last.body) and self.always(last.orelse)
        if isinstance(last, LOOPS) and not breaks(last.body):
            is_endless = isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value
            return bool(is_endless) or self.always(last.orelse)
        return isinstance(last, (ast.Break, ast.Continue)) or (isinstance(last, ast.Return) and self.has_returns)

    def block(self, statements: Sequence[ast.stmt]) -> Block:
        """Return a block without jumps."""
        made: Block = []
        for place, statement in enumerate(statements):
            rest = list(statements[place + 1 :])
            if isinstance(statement, ast.Return) and self.has_returns:
                result = ast.Assign([ast.Name(RESULT, ast.Store())], statement.value or ast.Constant(None))
                return [*made, ast.copy_location(result, statement), *code(f"{JUMP} = {RETURN}", statement)]
            if isinstance(statement, (ast.Break, ast.Continue)):
                number = BREAK if isinstance(statement, ast.Break) else CONTINUE
                return [*made, *code(f"{JUMP} = {number}", statement)]
            leaves = self.escape([statement])
            if isinstance(statement, ast.If) and leaves:  # the rest belongs to the side that goes on
                if self.always(statement.body):
                    statement.orelse, rest = [*statement.orelse, *rest], []
                elif self.always(statement.orelse):
                    statement.body, rest = [*statement.body, *rest], []
            made += self.statement(statement)
            if leaves and rest:
                made += guarded(f"{JUMP} == 0", self.block(rest), statement)
            if leaves:
                return made
        return made

    def statement(self, statement: Any) -> Block:
        """Return statements in place of one that may hold jumps."""
        if isinstance(statement, LOOPS):
            return self.loop(statement)
        if hasattr(statement, "finalbody"):
            if self.escape(statement.finalbody):
                raise RewritingError(statement.lineno, "a return, break or continue in a finally block")
            if self.escape(statement.body) and statement.orelse:
                statement.orelse = guarded(f"{JUMP} == 0", statement.orelse, statement)
        for owner, field in blocks(statement):
            setattr(owner, field, self.block(getattr(owner, field)))
        return [statement]

    def loop(self, loop: Any) -> Block:
        """Return a loop without jumps. It ends with `jump__` at 0, or at that of a ``return``."""
        after, loop.orelse = self.block(loop.orelse), []
        loop.jumps = self.escape(loop.body)
        if not loop.jumps:
            loop.body = self.block(loop.body)
            return [loop, *after]
        returns = self.has_returns and any(isinstance(node, ast.Return) for node in within(loop.body))
        loop.body = [*code(f"{JUMP} = 0", loop), *self.block(loop.body)]
        landed = code(f"{JUMP} = {HELPERS}.landed({JUMP})" if returns else f"{JUMP} = 0", loop)
        if not after:
            return [loop, *landed]
        return [loop, *guarded(f"{JUMP} < {BREAK}", [*code(f"{JUMP} = 0", loop), *after], loop, landed)]


def breaks(nodes: Iterable[Any]) -> bool:
    """Return whether the body of a loop has a ``break`` of that loop."""
    for node in nodes:
        inner = node.orelse if isinstance(node, LOOPS) else ast.iter_child_nodes(node)
        if isinstance(node, ast.Break) or (not isinstance(node, SCOPES) and breaks(inner)):
            return True
    return False


def guarded(test: str, body: Block, at: ast.AST, otherwise: Sequence[ast.stmt] = ()) -> Block:
    """Return a block under a condition."""
    return [ast.copy_location(ast.If(expression(test, at), body, list(otherwise)), at)]


# Variables ------------------------------------------------------------------------------------------------


class Names(ast.NodeVisitor):
    """Names of variables in a part of a function.

    Attributes:
        read, assigned: by the part itself.
        written: by ``x += y`` and ``x[i] = y``, which may write in place.
        shared: read or assigned by functions that are defined there, whenever they are called.
        rebound: those that such a function assigns.
    """

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.read: set[str] = set()
        self.assigned: set[str] = set()
        self.written: set[str] = set()
        self.shared: set[str] = set()
        self.rebound: set[str] = set()
        for node in nodes:
            self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        (self.read if isinstance(node.ctx, ast.Load) else self.assigned).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read.add(node.target.id)
            self.written.add(node.target.id)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            base = base.value
        if isinstance(base, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.assigned.add(base.id)
            self.written.add(base.id)
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, (*SCOPES, ast.GeneratorExp)):
            inner = [each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Nonlocal))]
            rebound = {name for each in inner if isinstance(each, ast.Nonlocal) for name in each.names}
            self.rebound |= rebound
            self.shared |= rebound | {each.id for each in inner if isinstance(each, ast.Name)}
            self.read |= self.shared
        elif isinstance(node, COMPREHENSIONS):
            self.read |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        else:
            super().generic_visit(node)
        if isinstance(node, ast.alias):
            self.assigned.add((node.asname or node.name).partition(".")[0])
        elif not isinstance(node, (ast.Attribute, ast.keyword)):
            held = (getattr(node, field, None) for field in ("name", "rest"))  # of functions, handlers, patterns
            self.assigned |= {name for name in held if isinstance(name, str)}
        if isinstance(node, (*COMPREHENSIONS, ast.GeneratorExp)):
            named = [each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
            self.assigned.update(named)


def live_before(statements: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """Return the variables that may be read before they are assigned: by some statements, or `after` them."""
    for statement in reversed(statements):
        after = before(statement, after)
    return after


def before(statement: Any, after: set[str]) -> set[str]:
    """Return the variables that may be read from one statement on."""
    if isinstance(statement, ast.If):
        sides = live_before(statement.body, after) | live_before(statement.orelse, after)
        return sides | Names([statement.test]).read
    if type(statement) in LOOPS:
        is_while = isinstance(statement, ast.While)
        target = set() if is_while else Names([statement.target]).assigned
        source = Names([statement.test if is_while else statement.iter]).read
        head = after | source if is_while else after
        for _ in range(2):  # what the second repetition reads is read at the end of the first
            head = head | (live_before(statement.body, head) - target)
        return head | source
    parts = list(blocks(statement))
    if parts:  # of a `with`, `try` or `match`, of which none may run to its end
        owners = dict.fromkeys([statement, *(owner for owner, _ in parts)])
        header = [part for owner in owners for part in ast.iter_child_nodes(owner) if not isinstance(part, HOLDERS)]
        after = early(statement, after)
        heads = [live_before(getattr(owner, field), after) for owner, field in parts]
        return after.union(Names(header).read, *heads)
    names = Names([statement])
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        stored = {each.id for target in targets for each in within([target]) if isinstance(each, ast.Name)}
        after = after - (stored & Names(targets).assigned - Names(targets).written)
    return after | names.read


def early(statement: Any, after: set[str]) -> set[str]:
    """Return the variables that may be read if a block of a `with`, `try` or `match` ends at any place."""
    for _ in range(2):  # a `finally` comes after a handler
        for owner, field in blocks(statement):
            if (owner, field) != (statement, "body"):
                after = after | live_before(getattr(owner, field), after)
    return after


# Statements -----------------------------------------------------------------------------------------------


class Statements:
    """Makes the control flow of one function calls."""

    def __init__(self, function: Any) -> None:
        body: Block = function.body
        named = [each for each in within(body) if isinstance(each, (ast.Global, ast.Nonlocal))]
        self.globals = {name for each in named if isinstance(each, ast.Global) for name in each.names}
        outer = {name for each in named if isinstance(each, ast.Nonlocal) for name in each.names}
        for each in named:
            each.__class__ = ast.Pass  # type: ignore[assignment]  # said again at the top
        jumps = Jumps(body)
        if jumps.has_returns and not jumps.always(body):
            body = [*body, *code("return None", body[-1])]
        body = jumps.block(body)
        names = Names(body)
        self.always = names.shared | outer
        self.rebound = names.rebound
        self.count = 0
        self.declared: set[str] = set()
        body = self.block(body, {RESULT} if jumps.has_returns else set(), set())
        arguments = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
        said = (("global", self.globals), ("nonlocal", outer))
        start = [f"{kind} {', '.join(sorted(names))}" for kind, names in said if names]
        start += [f"{name}: None" for name in sorted(self.declared - arguments - outer - self.globals - {JUMP})]
        start += [f"{JUMP} = 0"] if jumps.is_needed else []
        end = code(f"return {RESULT}", body[-1]) if jumps.has_returns else []
        function.body = [*code("\n".join(start), function), *body, *end]

    def block(self, statements: Block, after: set[str], kept: set[str]) -> Block:
        """Return a block with calls in place of control flow.

        Args:
            after: the variables that are read afterwards.
            kept: those that the next repetition of the loop around it reads, or what follows that.
        """
        made: Block = []
        for statement in reversed(statements):
            live = before(statement, after)
            made = self.statement(statement, after, kept) + made
            after = live
        return made

    def statement(self, statement: Any, after: set[str], kept: set[str]) -> Block:
        """Return statements in place of one."""
        if isinstance(statement, ast.If):
            return self.branch(statement, after, kept)
        if isinstance(statement, LOOPS):
            return self.loop(statement, after)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            value, computes = ast.Name(statement.target.id, ast.Load()), expression("lambda x, y: x + y", statement)
            computes.body.op = statement.op
            anew = ast.Assign([statement.target], call("anew", statement, computes, value, statement.value))
            test = call("is_number_tensor", statement, value)
            return [ast.copy_location(ast.If(test, [anew], [copy.deepcopy(statement)]), statement)]
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):  # `nonlocal` takes no type
            plain = ast.Assign([statement.target], statement.value) if statement.value else ast.Pass()
            return [ast.copy_location(plain, statement)]
        after = early(statement, after)
        for owner, field in blocks(statement):
            setattr(owner, field, self.block(getattr(owner, field), after, kept))
        return [statement]

    def branch(self, statement: ast.If, after: set[str], kept: set[str]) -> Block:
        """Return ``script__.branch(test, then, otherwise, names)``."""
        sides = [statement.body, statement.orelse]
        names = self.names([*statement.body, *statement.orelse], after, kept)
        statement.body, statement.orelse = (self.block(side, after, kept) for side in sides)
        if any(isinstance(node, SUSPENDS) for side in sides for node in within(side)):
            statement.test = call("plain", statement, statement.test, ast.Constant("yield or await in a branch"))
            return [statement]
        then, otherwise = (self.function(kind, names, statement) for kind in ("then__", "otherwise__"))
        then.body += statement.body
        otherwise.body += statement.orelse
        sides_named = expression(f"({then.name}, {otherwise.name}, {self.flags(names)})", statement).elts
        return [then, otherwise, as_statement(call("branch", statement, statement.test, *sides_named))]

    def loop(self, loop: Any, after: set[str]) -> Block:
        """Return ``script__.repeat(test, body, names)`` or ``script__.each(rows, body, going, names)``."""
        is_while, jumps = isinstance(loop, ast.While), getattr(loop, "jumps", False)
        head = before(loop, after) | ({JUMP} if jumps else set())
        names = self.names(loop.body if is_while else [loop.target, *loop.body], after | head, set())
        suspends = any(isinstance(node, SUSPENDS) for node in (loop, *within(loop.body)))
        assigns = is_while and any(isinstance(node, ast.NamedExpr) for node in within([loop.test]))
        loop.body = self.block(loop.body, after | head, after | head)
        rule = "yield or await in a loop" if suspends else "the condition of a while assigns a variable"
        if suspends or assigns:
            if is_while:
                loop.test = call("plain", loop, loop.test, ast.Constant(rule))
            if jumps:
                leave = call("plain", loop, expression(f"{JUMP} >= {BREAK}", loop), ast.Constant(rule))
                loop.body.append(ast.copy_location(ast.If(leave, [ast.Break()], []), loop))
            return [loop]
        going = f"{JUMP} < {BREAK}"
        body = self.function("body__", names, loop)
        if is_while:
            test = self.function("test__", names, loop)
            both = ast.BoolOp(ast.And(), [expression(going, loop), loop.test])
            test.body.append(ast.Return(ast.copy_location(both, loop) if jumps else loop.test))
            ast.copy_location(test.body[-1], loop)
            body.body += loop.body
            operands = expression(f"({test.name}, {body.name}, {self.flags(names)})", loop).elts
            return [test, body, as_statement(call("repeat", loop, *operands))]
        body.args.args = [ast.copy_location(ast.arg(ITEM), loop)]
        item = ast.copy_location(ast.Assign([loop.target], ast.Name(ITEM, ast.Load())), loop)
        body.body += [item, *loop.body]
        stays = f"lambda: {going}" if jumps else "None"
        operands = expression(f"({body.name}, {stays}, {self.flags(names)})", loop).elts
        return [body, as_statement(call("each", loop, rows(loop.iter), *operands))]

    def names(self, nodes: Sequence[ast.AST], after: set[str], kept: set[str]) -> dict[str, str]:
        """Return the variables that a statement assigns, with what is known of each."""
        found = Names(nodes)
        facts = {"live": after | self.always, "kept": kept | self.always, "written": found.written}
        assigned = sorted(found.assigned | self.rebound)
        self.declared.update(assigned)
        return {name: " ".join(fact for fact, of in facts.items() if name in of) for name in assigned}

    def flags(self, names: dict[str, str]) -> str:
        """Return the text of the facts, of variables of functions."""
        return repr({name: facts for name, facts in names.items() if name not in self.globals})

    def function(self, kind: str, names: dict[str, str], at: ast.AST) -> Any:
        """Return a function without a body, which shares the variables."""
        self.count += 1
        shared = [name for name in names if name not in self.globals]
        others = [name for name in names if name in self.globals]
        lines = [f"{word} {', '.join(of)}" for word, of in (("nonlocal", shared), ("global", others)) if of]
        (made,) = code(f"def {kind}{self.count}():\n " + "\n ".join(lines or ["pass"]), at)
        return made


def as_statement(value: ast.expr) -> ast.stmt:
    """Return an expression as a statement."""
    return ast.copy_location(ast.Expr(value), value)


def rows(source: ast.expr) -> ast.expr:
    """Return what a ``for`` iterates over; calls by name, such as ``range(n)``, may be of traced values."""
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name):
        return source
    made = call("rows", source, source.func, *map(rows, source.args))
    made.keywords = source.keywords
    return made


# Expressions ----------------------------------------------------------------------------------------------


class Expressions(ast.NodeTransformer):
    """Makes logical operators calls, whose later operands are functions."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Leave the body of a class, whose variables functions do not see; visit its methods."""
        node.body = [self.visit(each) if isinstance(each, FUNCTIONS) else each for each in node.body]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """``a and b`` is ``script__.both(a, lambda: b)``."""
        self.generic_visit(node)
        if moves_badly(node.values[1:]):
            return node
        *first, last = node.values
        for operand in reversed(first):
            last = call("both" if isinstance(node.op, ast.And) else "either", node, operand, later(last))
        return last

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """``not a`` is ``script__.opposite(a)``."""
        self.generic_visit(node)
        return call("opposite", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """``a if t else b`` is ``script__.chosen(t, lambda: a, lambda: b)``."""
        self.generic_visit(node)
        if moves_badly([node.body, node.orelse]):
            return node
        return call("chosen", node, node.test, later(node.body), later(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``a < b < c`` is ``script__.compared(a, lambda: b, lambda x, y: x < y, ...)``."""
        self.generic_visit(node)
        if len(node.ops) == 1 or moves_badly(node.comparators):
            return node
        steps: list[ast.expr] = []
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            compares = expression("lambda x, y: x < y", node)
            compares.body.ops = [operator]
            steps += [later(operand), compares]
        return call("compared", node, node.left, *steps)


def moves_badly(operands: Sequence[ast.expr]) -> bool:
    """Return whether operands cannot be put into functions of their own."""
    return any(isinstance(node, (*SUSPENDS, ast.NamedExpr)) for node in within(operands))


def later(operand: ast.expr) -> ast.expr:
    """Return a function without parameters that gives an operand."""
    made = expression("lambda: None", operand)
    made.body = operand
    return made  # type: ignore[no-any-return]


def rewrite(function: ast.AST) -> ast.AST:
    """Rewrite a function, and those that it defines, in place."""
    pending = [function]
    for each in pending:  # the list grows during the loop
        if isinstance(each, FUNCTIONS):
            pending += [node for node in ast.walk(each) if isinstance(node, FUNCTIONS) and node is not each]
    for each in dict.fromkeys(pending):  # from the outside in
        if isinstance(each, FUNCTIONS):
            explicit_super(each)
            Statements(each)
    made: ast.AST = Expressions().visit(function)
    return ast.fix_missing_locations(made)


def explicit_super(function: Any) -> None:
    """Name what ``super()`` finds out from the function that calls it."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    for node in within(function.body):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args
        if is_call and node.func.id == "super" and arguments:  # type: ignore[attr-defined]
            node.args = expression(f"(__class__, {arguments[0].arg})", node).elts  # type: ignore[attr-defined]
