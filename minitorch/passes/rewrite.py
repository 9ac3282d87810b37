"""Rewriting graphs by tables of laws: rows of a pattern and its replacement.

A pattern is written like the expression it matches: with wildcards, numbers, Python's operators, and
`op.<primitive>` for all others. A table is read from top to bottom, and tables add up with ``+``::

    x, y = wildcard("x"), wildcard("y")
    laws = Rules(
        Rule(x * 1, x),
        Rule(x + -y, x - y),
        Rule(op.floor(op.floor(x)), op.floor(x)),
        Rule(x - x, 0, where=integers("x")),
    )

- A wildcard matches any node; where it occurs twice, twice the same node.
- A number matches a splat constant with the bits that the number has in that type: ``0`` does not match ``-0.0``.
  `number("c")` matches any splat constant.
- Operands of commutative primitives are tried in both orders.
- A parameter that the pattern does not mention may be anything; ``shape=param("s")`` remembers it.
- A replacement is an expression of the same kind, or a function ``(match) -> node or None``.
- The replacement has the shape and type of the node that it replaces; the engine checks that.

`rewrite` goes through the program once, forwards, applying rules to each node until none fires. New nodes take the
source of the one they replace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from ..dtypes import PYTHON_NUMBERS
from ..errors import GraphError
from ..graph.build import with_inputs
from ..graph.graph import Graph
from ..ir import PRIMITIVES, Node, Primitive
from ..sizes import UndecidedError
from .patterns import Bindings, Match, Operand, Operation, Pattern, Wildcard, as_pattern, instantiate, matches, orders

Guard = Callable[[Match], bool]
Replacement = Callable[[Match], Node | None]


# Rules ------------------------------------------------------------------------------------------------------


class Rule:
    """One row of a table: an algebraic law.

    Args:
        pattern: matches the node to be replaced.
        replacement: an expression, a number, or a function of the match that may decline.
        where: a condition on the match.
        name: the law as text; by default, made from pattern and replacement.

    Example:
        >>> from minitorch.passes.patterns import op, wildcard
        >>> x = wildcard("x")
        >>> print(Rule(x * 1, x), "|", Rule(op.floor(op.floor(x)), op.floor(x)), "|", Rule(~~x, x))
        x * 1 -> x | floor(floor(x)) -> floor(x) | ~(~x) -> x
    """

    def __init__(
        self,
        pattern: Pattern,
        replacement: Operand | Replacement,
        where: Guard | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(pattern, Operation):
            raise TypeError(f"a rule replaces an application of a primitive, not {pattern}")
        self.pattern = pattern
        self.variants = tuple(orders(pattern))
        self.expression = as_pattern(replacement) if isinstance(replacement, (Pattern, *PYTHON_NUMBERS)) else None
        self.replacement = replacement
        self.where = where
        self.name = name or f"{pattern} -> {replacement}"

    def apply(self, match: Match) -> Node | None:
        """Return the replacement of a node the pattern fits; None if the rule declines or would decide by a size."""
        try:
            return self._apply(match)
        except UndecidedError:
            return None

    def _apply(self, match: Match) -> Node | None:
        if self.where is not None and not self.where(match):
            return None
        if self.expression is None:
            assert callable(self.replacement)
            return self.replacement(match)
        return instantiate(self.expression, match.bindings, match.node.spec, match.node.source)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


class Rules:
    """A table of rules; tables add up with ``+``."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules
        # The patterns to try: by the node's primitive, then by the operands that patterns name.
        self.by_primitive: dict[Primitive, list[tuple[frozenset[Primitive], Operation, Rule]]] = {}
        for rule in rules:
            for variant in rule.variants:
                assert isinstance(variant, Operation)
                row = (_needed(variant), variant, rule)
                self.by_primitive.setdefault(variant.primitive, []).append(row)

    def __add__(self, other: Rules) -> Rules:
        return Rules(*self.rules, *other.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def first(self, node: Node) -> tuple[Rule, Node] | None:
        """Return the first rule that fires at a node, and the replacement.

        Raises:
            GraphError: if the replacement has another shape or type (``MT601``).
        """
        rows = self.by_primitive.get(node.primitive)
        if rows is None:
            return None
        present = {operand.primitive for operand in node.inputs}
        for needed, pattern, rule in rows:
            if not needed <= present:
                continue
            bindings: Bindings = {}
            if not matches(pattern, node, bindings):
                continue
            replacement = rule.apply(Match(node, bindings))
            if replacement is None or replacement is node:
                continue
            if replacement.spec != node.spec:
                raise GraphError(
                    "MT601",
                    f"the rule {rule} puts {replacement!r} in the place of {node!r}",
                    where=str(node.source) if node.source else None,
                    why="a replacement has the shape and type of the node that it replaces",
                )
            return rule, replacement
        return None


def _needed(pattern: Operation) -> frozenset[Primitive]:
    constant = PRIMITIVES["constant"]
    return frozenset(
        each.primitive if isinstance(each, Operation) else constant
        for each in pattern.operands
        if not isinstance(each, Wildcard)
    )


# The engine -------------------------------------------------------------------------------------------------

MOST_STEPS = 200  # replacements at one node of the program; a table that needs more is taken to loop


def rewrite(graph: Graph, rules: Rules, fired: Counter[str] | None = None) -> Graph:
    """Apply all rules to a graph wherever they fit, in one walk through the program.

    Args:
        graph: left unchanged.
        rules: the table.
        fired: if given, counts how often each rule was applied, by name.

    Raises:
        GraphError: if the rules go round in circles, or one changes a shape or type (``MT601``).

    Example:
        >>> from minitorch.passes.patterns import op, wildcard
        >>> x = wildcard("x")
        >>> graph = Graph.parse("graph(a: f32[2]): %0 = mul(1.0, a) %1 = neg(%0) %2 = neg(%1) return %2")
        >>> print(rewrite(graph, Rules(Rule(x * 1, x), Rule(-(-x), x))))
        graph(a: f32[2]):
          %0 = neg(a) : f32[2]
          return a
    """
    done: dict[Node, Node] = {node: node for node in graph.inputs}  # the replacement of each node
    program: list[Node] = []
    for node in graph.nodes:
        steps = 0
        becomes: dict[Node, Node] = {}  # while the replacement is being rewritten
        pending = [node]
        while pending:
            at = pending[-1]
            if at in done:
                pending.pop()
            elif at in becomes:
                target = becomes[at]
                steps += 1
                if steps > MOST_STEPS:
                    raise _circle(rules, at)
                if target in done:
                    done[at] = done[target]
                else:
                    pending.append(target)
            elif missing := [operand for operand in reversed(at.inputs) if operand not in done]:
                pending += missing  # nodes of a replacement
            else:
                now = with_inputs(at, tuple([done[operand] for operand in at.inputs]))
                found = rules.first(now)
                if found is None:
                    done[at] = done[now] = now
                    program.append(now)
                    continue
                rule, becomes[at] = found
                if fired is not None:
                    fired[rule.name] += 1
    if all(done[node] is node for node in graph.nodes):
        return graph
    return graph.with_nodes(program, (done[node] for node in graph.outputs))


def _circle(rules: Rules, node: Node) -> GraphError:
    return GraphError(
        "MT601",
        f"the rules do not come to an end at {node!r}",
        where=str(node.source) if node.source else None,
        why=f"after {MOST_STEPS} replacements there was still a rule that applies: " + "; ".join(map(str, rules)),
        fix="make every rule lead to something smaller, or guard it with `where=`",
    )


# Guards -----------------------------------------------------------------------------------------------------


def integers(name: str) -> Guard:
    """Return a guard: the named node has an integer type or bool."""
    return lambda match: match[name].dtype.category != "float"


def floats(name: str) -> Guard:
    """Return a guard: the named node has a float type."""
    return lambda match: match[name].dtype.category == "float"


def signed(name: str) -> Guard:
    """Return a guard: the named node has a type with negative numbers."""
    return lambda match: match[name].dtype.is_signed
