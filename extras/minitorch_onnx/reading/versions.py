"""Operators of older opsets in the form of the newest, which is the one that rows know.

The package `onnx` has the schemas of all versions of an operator, so they are compared: what was an attribute and is an
input today becomes a constant, and attributes that came later have their defaults. The tables say what schemas do not.
Softmax and its kin, BatchNormalization, Resize and Scan once computed something else; their rows look at the version.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common import newest_opset, package

Array = np.ndarray[Any, Any]

OLDEST_READ = 7
"""The oldest opset that is read: from it on, arithmetic broadcasts as NumPy does."""

SUCCESSORS = {"Scatter": "ScatterElements", "Upsample": "Resize"}  # of operators that ONNX has withdrawn
INPUTS = {("Pad", "value"): "constant_value", ("TopK", "k"): "K"}  # inputs that have another name than the attribute
FLOATS = (1, 6)  # of `AttributeProto.AttributeType`: one and a list


def newest(schema: Any) -> Any:
    """The newest schema of the operator of a schema."""
    return package().defs.get_schema(schema.name, newest_opset(), "") if schema.domain == "" else schema


def moved(schema: Any, found: dict[str, Any]) -> dict[str, tuple[int, Array]]:
    """The attributes that are inputs today, with the place of the input; they are taken out of `found`.

    Args:
        schema: of the version that the node is of.
        found: attributes by name, None for those without a value.

    Example:
        >>> moved(package().defs.get_schema("TopK", 9, ""), {"axis": -1, "k": 3})
        {'k': (1, array([3]))}
    """
    last = newest(schema)
    places = {each.name: at for at, each in enumerate(last.inputs)}
    result = {}
    for name, attribute in schema.attributes.items():
        place = places.get(INPUTS.get((schema.name, name), name))
        if place is None or name in last.attributes or found[name] is None:
            continue
        dtype = np.float32 if int(attribute.type.value) in FLOATS else np.int64
        value = found.pop(name)
        result[name] = place, np.array([value] if schema.name == "TopK" else value, dtype)
    return result
