"""Protobuf's wire format, walked through without making messages of it: truncated files and bombs are found here.

A message is a list of fields, each a *tag* (the field's number and its wire type) and a value: a number of variable
length, 4 or 8 bytes, or a length and so many bytes, which may be a message again. Parsed, an empty message of two bytes
takes about a hundred. So fields are counted before anything is parsed, and bytes of arrays are skipped.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from typing import Any

from .attributes import decoded
from .limits import MOST_DEPTH, MOST_FIELDS, refuse

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5  # wire types; 3 and 4, groups, are in no ONNX message

Children = dict[int, Any]  # by field number: the `Children` of messages, `TEXT` for texts

TEXT = 9  # of `FieldDescriptor.type`


def check(content: bytes, descriptor: Any) -> int:
    """Walk through a serialised message, and count its fields.

    Args:
        content: the bytes of a file.
        descriptor: protobuf's description of the message.

    Raises:
        OnnxError: if it is truncated, nested too deeply, of too many fields, or has a text that is not UTF-8, which
            protobuf would hand over as bytes (``MT801``).

    Example:
        >>> import onnx
        >>> model = onnx.ModelProto(ir_version=8, producer_name="me")
        >>> check(model.SerializeToString(), onnx.ModelProto.DESCRIPTOR)
        2
    """
    fields = 0
    # The messages that are open: where each ends, and what is a message in it.
    pending: list[tuple[int, int, Children]] = [(0, len(content), _children(descriptor))]
    while pending:
        at, end, children = pending.pop()
        while at < end:
            fields += 1
            if fields > MOST_FIELDS:
                refuse(f"it has more than {MOST_FIELDS} fields")
            tag, at = (content[at], at + 1) if content[at] < 128 else _varint(content, at, end)
            number, kind = tag >> 3, tag & 7
            if kind == VARINT:
                _, at = _varint(content, at, end)
            elif kind == LENGTH:
                length, at = _varint(content, at, end)
                if length > end - at:
                    refuse(f"it is truncated: a field announces {length} bytes, and {end - at} are left")
                inside = children.get(number)
                if inside is TEXT:
                    decoded("a name or a text", content[at : at + length])
                if inside is TEXT or inside is None:
                    at += length
                    continue
                if len(pending) >= MOST_DEPTH:
                    refuse(f"messages in it are nested more than {MOST_DEPTH} deep")
                pending.append((at + length, end, children))
                end, children = at + length, inside
            elif kind in (EIGHT_BYTES, FOUR_BYTES):
                at += 8 if kind == EIGHT_BYTES else 4
            else:
                refuse(f"a field has the wire type {kind}, which ONNX does not use")
            if at > end:
                refuse("it is truncated, or no protobuf message")
    return fields


def _varint(content: bytes, at: int, end: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    while at < end and shift < 70:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    refuse("it is truncated, or no protobuf message")


def _children(descriptor: Any) -> Children:
    """The fields of a message that are messages or texts; a message may contain its own kind."""
    if descriptor.full_name in _KNOWN:
        return _KNOWN[descriptor.full_name]
    found = _KNOWN[descriptor.full_name] = {}
    for number, field in descriptor.fields_by_number.items():
        if field.message_type is not None:
            found[number] = _children(field.message_type)
        elif field.type == TEXT:
            found[number] = TEXT
    return found


_KNOWN: dict[str, Children] = {}
