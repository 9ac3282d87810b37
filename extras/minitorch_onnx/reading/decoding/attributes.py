"""Attributes of nodes: from messages to Python, checked against the schema of their operator.

The package `onnx` has a schema for every version of every operator: names, types and defaults of its attributes, and
how many inputs and outputs it has. So a row finds all attributes, with defaults, and of the right type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .limits import MOST_NUMBERS, refuse

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
    field = FIELDS.get(attribute.type)
    if field is None:
        refuse(f"the attribute {attribute.name!r} of {place} is of the type {attribute.type}, which ONNX does not have")
    value = getattr(attribute, field)
    what = f"the attribute {attribute.name!r} of {place}"
    if field == "s":
        return decoded(what, value)
    if field in ("f", "i", "t", "g", "tp", "sparse_tensor"):
        return value
    if len(value) > MOST_NUMBERS:
        refuse(f"{what} is a list of {len(value)}, more than {MOST_NUMBERS}")
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
        if each.name in found:
            refuse(f"the attribute {each.name!r} of {place} is there twice")
        if each.name not in known:
            refuse(f"{place} has an attribute {each.name!r}, which the operator does not have in this version")
        if int(known[each.name].type.value) != each.type:
            wanted = FIELDS[int(known[each.name].type.value)]
            refuse(f"the attribute {each.name!r} of {place} is of another type than the operator's, {wanted}")
        found[each.name] = value(place, each)
    for name, attribute in {**last.attributes, **known}.items():
        if name in found:
            continue
        if name in known and attribute.required:
            refuse(f"{place} lacks the attribute {name!r}")
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
        if not least <= len(names) <= most:
            refuse(f"{place} has {len(names)} {what}; the operator has {least} to {most}")
        for at, name in enumerate(names if formals else ()):
            formal = formals[min(at, len(formals) - 1)]  # the last one may stand for any number
            if not name and formal.option.name != "Optional":
                refuse(f"{place} lacks its input {formal.name}")
