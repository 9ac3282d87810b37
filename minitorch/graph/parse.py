"""The parser, which reads a listing back into a `Graph`; the grammar is at the top of `minitorch.graph.text`.

Any text but a legal graph is a `ParseError` with the line number. Nothing is computed, and no memory is taken beyond
the data that the text spells out, so that a damaged listing does no harm.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..dtypes import BY_SHORT_NAME
from ..errors import ParseError
from ..ir import PRIMITIVES, Node, Primitive, Source, Spec, as_stored, primitive_named
from ..primitives import constant
from .array_text import from_base64, from_nested
from .build import input_node, literal
from .values import Number, is_splat
from .verify import INPUT_RULES, MAX_DIMS, NODE_RULES, Rule, wrong_parameter

if TYPE_CHECKING:
    from .graph import Graph

MAX_DIGITS = 20

_TOKEN = re.compile(
    r"""[ \t\r]*(?:
      (?P<newline>\n)
    | (?P<comment>\#[^\n]*)
    | (?P<reference>%[0-9]+)
    | (?P<body>@[0-9]+)
    | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|inf|nan)(?![\w.])|(?:true|false)(?![\w.]))
    | (?P<name>[\w.]+)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<mark>[()\[\]:,=])
    | (?P<end>\Z)
    | (?P<unreadable>.)
    )""",
    re.VERBOSE,
)
_SOURCE = re.compile(r"#\s*(.+):([0-9]{1,9})\s*")
_WORDS: dict[str, Number] = {"true": True, "false": False, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\r": "\r"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class _Untyped:
    """A number among the operands, whose shape and type follow from the other operands."""

    value: Number
    line: int


class Listed(NamedTuple):
    """The parts of the graph that a listing describes."""

    inputs: tuple[Node, ...]
    outputs: list[Node]
    nodes: list[Node]
    name: str


def parse(text: str, make: Callable[..., Graph]) -> Listed:
    """Parse a listing into the parts of a legal graph; every rule is checked on the way.

    Args:
        text: the listing.
        make: makes the graphs among the parameters of nodes.

    Raises:
        ParseError: if it is not one; its `line` says where (``MT602``).

    Example:
        >>> from minitorch.graph import Graph
        >>> parse("graph(x: f32[2]): %0 = mul(x, 2) return %0, x", Graph).outputs
        [<mul: f32[2]>, <input: f32[2]>]
    """
    return _Parser(*_split(text), make).graph()


def _split(text: str) -> tuple[list[_Token], dict[int, Source], dict[str, Graph | None]]:
    """Return the words of a listing, the lines that made its nodes, and room for the bodies that are parsed."""
    tokens, sources, line = [], {}, 1
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        word = match[kind]
        if kind == "newline":
            line += 1
        elif kind == "comment":
            if found := _SOURCE.fullmatch(word):
                sources[line] = Source(found[1], int(found[2]))
        elif kind == "unreadable":
            raise ParseError(f"{word!r} has no meaning here", line)
        else:
            tokens.append(_Token(kind, word, line))
    return tokens, sources, {}


class _Parser:
    def __init__(
        self,
        tokens: list[_Token],
        sources: dict[int, Source],
        parsed: dict[str, Graph | None],
        make: Callable[..., Graph],
    ) -> None:
        self.tokens, self.sources, self.parsed, self.make = tokens, sources, parsed, make
        self.at = 0
        self.values: dict[str, Node] = {}  # by name, or by % and number
        self.literals: dict[tuple[str, Spec], Node] = {}
        self.nodes: list[Node] = []

    # Words ----------------------------------------------------------------------------------------------

    def next_is(self, *texts: str) -> bool:
        return self.tokens[self.at].text in texts

    def take(self) -> _Token:
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token

    def skip(self, text: str) -> bool:
        """Go over a mark or word if it comes next."""
        found = self.tokens[self.at].text == text
        self.at += found
        return found

    def expect(self, text: str) -> None:
        token = self.tokens[self.at]
        if not self.skip(text):
            self.fail(f"{text!r} was expected, not {token.text or 'the end'!r}", token.line)

    def expect_kind(self, kind: str, what: str) -> _Token:
        token = self.take()
        if token.kind != kind:
            self.fail(f"{what} was expected, not {token.text or 'the end'!r}", token.line)
        return token

    def fail(self, what: str, line: int | None = None) -> NoReturn:
        raise ParseError(what, line or self.tokens[self.at].line)

    # A graph --------------------------------------------------------------------------------------------

    def graph(self) -> Listed:
        self.expect("graph")
        name = "graph" if self.next_is("(") else self.expect_kind("name", "the name of the graph").text
        listed = self.program(name)
        while self.tokens[self.at].kind == "body":  # parsed where they are used; of others, too, every rule is checked
            self.body(self.tokens[self.at])
            self.at += 1
            while self.tokens[self.at].kind != "end" and not self.begins_body(self.at):
                self.at += 1
        if self.tokens[self.at].kind != "end":
            self.fail(f"the end was expected, not {self.tokens[self.at].text!r}")
        return listed

    def begins_body(self, at: int) -> bool:
        return self.tokens[at].kind == "body" and self.tokens[at - 1].text != "=" and self.tokens[at + 1].text == "("

    def body(self, name: _Token) -> Graph:
        """Return the graph that a node's parameter names; it is listed further on."""
        if name.text not in self.parsed:
            starts = [
                at for at in range(1, len(self.tokens)) if self.tokens[at].text == name.text and self.begins_body(at)
            ]
            if len(starts) != 1:
                self.fail(f"there is {'no' if not starts else 'more than one'} {name.text} in the listing", name.line)
            self.parsed[name.text] = None
            inner = _Parser(self.tokens, self.sources, self.parsed, self.make)
            inner.at = starts[0] + 1
            self.parsed[name.text] = self.make(*inner.program("body"), verify=False)
        found = self.parsed[name.text]
        if found is None:
            self.fail(f"{name.text} is a part of itself", name.line)
        return found

    def program(self, name: str) -> Listed:
        self.expect("(")
        while not self.skip(")"):
            self.input()
            if not self.next_is(")"):
                self.expect(",")
        self.expect(":")
        inputs = tuple(self.values.values())
        while self.tokens[self.at].kind == "reference":
            self.node()
        self.expect("return")
        outputs: list[Node] = []
        while self.tokens[self.at].kind != "end" and not self.begins_body(self.at):
            if outputs:
                self.expect(",")
            line = self.tokens[self.at].line
            output = self.operand()
            outputs.append(output if isinstance(output, Node) else self.untyped(output, line))
        return Listed(inputs, outputs, self.nodes, name)

    def input(self) -> None:
        token = self.expect_kind("name", "the name of an input")
        self.expect(":")
        node = input_node(token.text, self.spec())
        if token.text in self.values:
            self.fail(f"there is another input {token.text!r}", token.line)
        self.check(INPUT_RULES, node, token.line)
        self.values[token.text] = node

    def node(self) -> None:
        name = self.take()
        self.expect("=")
        word = self.expect_kind("name", "the name of a primitive")
        primitive = primitive_named(word.text)
        if primitive is None:
            near = difflib.get_close_matches(word.text, PRIMITIVES, 1, 0.5)
            raise ParseError(
                f"there is no primitive {word.text!r}", word.line, fix=f"{near[0]!r} is one" if near else None
            )
        if name.text in self.values:
            self.fail(f"{name.text} is there already", name.line)
        self.expect("(")
        node = self.array(word.line) if primitive is constant else self.call(primitive, word.line)
        node.source = self.sources.get(self.tokens[self.at - 1].line)
        self.check(NODE_RULES, node, word.line)
        self.nodes.append(node)
        self.values[name.text] = node

    def call(self, primitive: Primitive, line: int) -> Node:
        operands: list[Node | _Untyped] = []
        params: dict[str, Any] = {}
        while not self.skip(")"):
            if self.tokens[self.at].kind == "name" and self.tokens[self.at + 1].text == "=":
                name = self.take().text
                self.expect("=")
                if name in params:
                    self.fail(f"the parameter {name} is given twice")
                params[name] = self.value()
            elif params:
                self.fail("operands come before parameters")
            else:
                operands.append(self.operand())
            if not self.next_is(")"):
                self.expect(",")
        inputs = self.typed(primitive, operands, line)
        if wrong := wrong_parameter(params):
            self.fail(f"{primitive.name}: {wrong}", line)
        try:
            spec = primitive.infer(*[node.spec for node in inputs], **params)
        except Exception as error:  # a shape rule may fail in any way on invalid operands
            raise ParseError.of(error, primitive.name, line) from None
        if self.skip(":") and (annotated := self.spec()) != spec:
            self.fail(f"{primitive.name} gives {spec}, not {annotated}", line)
        try:
            return Node(primitive, inputs, as_stored(params, spec), spec)
        except (ValueError, OverflowError) as error:
            raise ParseError(f"{primitive.name}: {error}", line) from None

    def typed(self, primitive: Primitive, operands: list[Node | _Untyped], line: int) -> tuple[Node, ...]:
        """Return the operands, with numbers in an elementwise operation as literals of the others' shape and type."""
        first_data = 1 if primitive.kind == "ternary" else 0
        nodes = [each for each in operands[first_data:] if isinstance(each, Node)]
        like = next((node for node in nodes if not is_splat(node)), nodes[0] if nodes else None)
        inputs = []
        for index, operand in enumerate(operands):
            if isinstance(operand, Node):
                inputs.append(operand)
            elif primitive.broadcasts and like is not None and index >= first_data:
                inputs.append(self.literal(operand.value, like.spec, operand.line))
            else:
                self.untyped(operand, line)
        return tuple(inputs)

    def untyped(self, operand: _Untyped, line: int) -> NoReturn:
        raise ParseError(
            f"nothing says what shape and type {operand.value} has", line, fix=f"write e.g. {operand.value}:f32[2,3]"
        )

    def operand(self) -> Node | _Untyped:
        token = self.take()
        if token.kind in ("reference", "name"):
            if token.text not in self.values:
                self.fail(f"{token.text} is not defined before its use", token.line)
            return self.values[token.text]
        if token.kind != "number":
            self.fail(f"an operand was expected, not {token.text or 'the end'!r}", token.line)
        value = self.number(token)
        return self.literal(value, self.spec(), token.line) if self.skip(":") else _Untyped(value, token.line)

    def literal(self, value: Number, spec: Spec, line: int) -> Node:
        if isinstance(value, float) and not value.is_integer() and not spec.dtype.is_floating_point:
            self.fail(f"{value} is not a number of type {spec.dtype.short}", line)
        key = repr(value), spec
        if key not in self.literals:
            try:
                node = self.literals[key] = literal(value, spec)
            except (ValueError, OverflowError) as error:
                raise ParseError(str(error), line) from None
            self.check(NODE_RULES, node, line)
            self.nodes.append(node)
        return self.literals[key]

    def check(self, rules: tuple[Rule, ...], node: Node, line: int) -> None:
        for rule in rules:
            wrong = rule.check(node, _NOTHING) if rule.name in _CHECKED_HERE else None
            if wrong is not None:
                self.fail(f"{node.primitive.name}: {wrong}", line)

    # Values ---------------------------------------------------------------------------------------------

    def spec(self) -> Spec:
        word = self.expect_kind("name", "a type")
        dtype = BY_SHORT_NAME.get(word.text)
        if dtype is None:
            self.fail(f"there is no type {word.text!r}", word.line)
        self.expect("[")
        shape: list[int] = []
        while not self.skip("]"):
            if shape:
                self.expect(",")
            length = self.number(self.expect_kind("number", "a length"))
            if type(length) is not int:
                self.fail(f"{length} is not a length", word.line)
            shape.append(length)
        return Spec(tuple(shape), dtype)

    def number(self, token: _Token) -> Number:
        if token.text in _WORDS:
            return _WORDS[token.text]
        if re.fullmatch(r"-?[0-9]+", token.text):
            if len(token.text) > MAX_DIGITS:
                self.fail("the number is too long", token.line)
            return int(token.text)
        return float(token.text)

    def value(self, depth: int = 0) -> Any:
        """Parse a parameter: a number, a type, a string, or a tuple of these."""
        token = self.take()
        if token.kind == "number":
            return self.number(token)
        if token.kind == "name" and token.text in BY_SHORT_NAME:
            return BY_SHORT_NAME[token.text]
        if token.kind == "string":
            return re.sub(r"\\.", lambda found: _UNESCAPED.get(found[0], found[0]), token.text[1:-1])
        if token.kind == "body":
            return self.body(token)
        if token.text == "[" and depth <= MAX_DIMS:
            values: list[Any] = []
            while not self.skip("]"):
                if values:
                    self.expect(",")
                values.append(self.value(depth + 1))
            return tuple(values)
        self.fail(f"a value was expected, not {token.text or 'the end'!r}", token.line)

    def array(self, line: int) -> Node:
        """Parse the array between the brackets of ``constant(...)``, and its type, which must follow."""
        encoded = self.skip("base64")
        if encoded:
            self.expect("=")
        value = self.value()
        self.expect(")")
        if not self.skip(":"):
            self.fail("a constant array needs its type: nothing else says it", line)
        spec = self.spec()
        try:
            return literal(from_base64(value, spec) if encoded else from_nested(value, spec))
        except (ValueError, OverflowError) as error:
            raise ParseError(f"constant: {error}", line) from None


_NOTHING: set[Node] = set()
_CHECKED_HERE = ("input", "static parameters", "shape", "value")
