"""Attributes of nodes: from messages to Python, checked against the schema of their operator.

The package `onnx` has a schema for every version of every operator: names, types and defaults of its attributes, and
how many inputs and outputs it has. So a row finds all attributes, with defaults, and of the right type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .limits import MOST_NUMBERS, refuse, require

# `AttributeProto.AttributeType`: the field of the value, by number.
FIELDS: dict[int, str] = {
    1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs",
    11: "sparse_tensor", 12: "sparse_tensors", 13: "tp", 14: "type_protos",
}  # fmt: skip
INT, TENSOR, GRAPH = 2, 4, 5


def decoded(what: str, text: bytes) -> str:
    """A text of the file.

    Raises:
        OnnxError: if it is no UTF-8 (``MT801``).
    """
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        refuse(f"{what} is not UTF-8: {text[:40]!r}")


def value_of(place: str, attribute: Any) -> Any:
    """The value of an `AttributeProto`: numbers, texts and lists of them; messages as they are.

    Raises:
        OnnxError: for a type that does not exist, a list that is too long, or a text that is not UTF-8 (``MT801``).
    """
    what, field = f"the attribute {attribute.name!r} of {place}", FIELDS.get(attribute.type, "")
    require(field, "{} is of the type {}, which ONNX does not have", what, attribute.type)
    value = getattr(attribute, field)
    if field == "s":
        return decoded(what, value)
    if not field.endswith("s"):
        return value
    require(len(value) <= MOST_NUMBERS, "{} is a list of {}, more than {}", what, len(value), MOST_NUMBERS)
    return [decoded(what, each) for each in value] if field == "strings" else list(value)


def checked(place: str, attributes: Any, schema: Any, last: Any, value: Callable[[str, Any], Any]) -> dict[str, Any]:
    """All attributes of a node's operator by name; those that are not given with their defaults, or None.

    Args:
        place: the node, in messages.
        attributes: its `AttributeProto`s.
        schema: of its operator.
        last: the operator's newest schema, for attributes that came later.
        value: what makes Python of a message.

    Raises:
        OnnxError: for an attribute that is there twice, is missing, or that the operator does not have (``MT801``).
    """
    known: Mapping[str, Any] = schema.attributes
    found: dict[str, Any] = {}
    for each in attributes:
        what = f"the attribute {each.name!r} of {place}"
        require(each.name not in found, "{} is there twice", what)
        require(each.name in known, "{} does not belong to the operator in this version", what)
        kind = int(known[each.name].type.value)
        require(kind == each.type, "{} is of another type than the operator's, {}", what, FIELDS[kind])
        found[each.name] = value(place, each)
    for name, attribute in {**last.attributes, **known}.items():
        if name not in found:
            require(name not in known or not attribute.required, "{} lacks the attribute {!r}", place, name)
            found[name] = value(place, attribute.default_value) if attribute.default_value.name else None
    return found


def check_counts(place: str, node: Any, schema: Any) -> None:
    """Compare the number of inputs and outputs with the schema's.

    Raises:
        OnnxError: if there are too few or too many, or one is left out that has to be there (``MT801``).
    """
    for what, names, least, most, formals in (
        ("inputs", node.input, schema.min_input, schema.max_input, schema.inputs),
        ("outputs", node.output, schema.min_output, schema.max_output, ()),
    ):
        text = "{} has {} {}; the operator has {} to {}"
        require(least <= len(names) <= most, text, place, len(names), what, least, most)
        for at, name in enumerate(names if formals else ()):
            formal = formals[min(at, len(formals) - 1)]  # the last one may stand for any number
            require(name or formal.option.name == "Optional", "{} lacks its input {}", place, formal.name)
