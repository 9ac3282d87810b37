"""Mutations of bytes: blind ones, and those that keep to protobuf's encoding, or lie in one place of it.

A message is a list of fields; encoded again, the lengths around a change are true. So a change deep inside of a file
is reached, and is not refused at the first length.
"""

from __future__ import annotations

import random
from typing import Any

import onnx

VARINT, LENGTH = 0, 2
WIDTHS = {1: 8, 5: 4}
HUGE = [0, 1, 127, 128, 2**16, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]

Field = list[Any]  # number, wire type, value: an int, bytes, a list of fields, or a `Lie`


class Lie:
    """Bytes that announce another length than theirs."""

    def __init__(self, content: bytes, length: int) -> None:
        self.content = content
        self.length = length


def varint(value: int) -> bytes:
    """A number of variable length."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def decoded(content: bytes, descriptor: Any) -> list[Field]:
    """The fields of a message, those of messages in it as lists."""
    found: list[Field] = []
    at = 0
    while at < len(content):
        tag, at = _number(content, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _number(content, at)
            found.append([number, kind, value])
            continue
        length, at = (WIDTHS[kind], at) if kind in WIDTHS else _number(content, at)
        inside, at = content[at : at + length], at + length
        field = descriptor.fields_by_number.get(number)
        is_message = kind == LENGTH and field is not None and field.message_type is not None
        found.append([number, kind, decoded(inside, field.message_type) if is_message else inside])
    return found


def encoded(fields: list[Field]) -> bytes:
    """The bytes of a message."""
    found = bytearray()
    for number, kind, value in fields:
        found += varint(number << 3 | kind)
        if isinstance(value, int):
            found += varint(value)
            continue
        content = encoded(value) if isinstance(value, list) else value.content if isinstance(value, Lie) else value
        if kind == LENGTH or isinstance(value, Lie):
            found += varint(value.length if isinstance(value, Lie) else len(content))
        found += content
    return bytes(found)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """A model's bytes with one or two fields changed, as a writer of protobuf would write them."""
    fields = decoded(content, onnx.ModelProto.DESCRIPTOR)
    for _ in range(chance.choice([1, 1, 2])):
        messages = [fields]
        for message in messages:
            messages += [value for _, _, value in message if isinstance(value, list)]
        message = chance.choice([each for each in messages if each] or [[[7, LENGTH, b""]]])
        place = chance.randrange(len(message))
        chance.choice(CHANGES)(message, place, chance, messages)
    return encoded(fields)


def _delete(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    del message[place]


def _repeat(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    message[place:place] = [message[place]] * chance.choice([1, 2, 70, 500])


def _move(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    message[chance.randrange(len(message))] = message[place]


def _elsewhere(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    number, kind, value = message[place]
    number = chance.choice([number, chance.randrange(1, 30)])
    copied = encoded(value) if isinstance(value, list) else value
    chance.choice(messages).append([number, kind, copied])


def _renumber(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    message[place][0] = chance.choice([0, chance.randrange(1, 30), 2**29 - 1, 2**40])


def _kind(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    message[place][1] = chance.randrange(8)


def _value(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    field = message[place]
    if isinstance(field[2], int):
        field[2] = chance.choice([*HUGE, field[2] + 1, chance.randrange(30)])
    elif isinstance(field[2], bytes):
        field[2] = blind(field[2], chance)


def _announce(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    value = message[place][2]
    if not isinstance(value, (int, Lie)):
        content = encoded(value) if isinstance(value, list) else value
        message[place][1:] = [LENGTH, Lie(content, chance.choice([*HUGE, len(content) + 1, max(len(content) - 1, 0)]))]


def _nest(message: list[Field], place: int, chance: random.Random, messages: list[list[Field]]) -> None:
    """A graph of a node of an attribute that is a graph, and so on; or a type of sequences of sequences."""
    ways = [(7, 1, 5, 6), (2, 1, 4)]  # fields: graph, node, attribute, g; of types: sequence_type, elem_type
    way, inner = chance.choice(ways), message[place]
    for turn in range(chance.choice([3, 20, 70, 200])):
        inner = [way[1:][-1 - turn % (len(way) - 1)], LENGTH, [inner]]
    message[place] = inner


CHANGES = [_delete, _repeat, _move, _elsewhere, _renumber, _kind, _value, _value, _announce, _nest]


def blind(content: bytes, chance: random.Random, other: bytes = b"") -> bytes:
    """Bytes changed, cut, put in or taken from another file, wherever chance falls."""
    for _ in range(chance.choice([1, 1, 2, 8])):
        place = chance.randrange(len(content) or 1)
        kind = chance.randrange(6)
        if kind < 2:
            content = content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]
        elif kind == 2:
            content = content[:place] + content[place + chance.randrange(1, 20) :]
        elif kind == 3:
            content = content[:place] + chance.randbytes(chance.randrange(1, 9)) + content[place:]
        elif kind == 4:
            content = content[:place]
        elif other:
            begin = chance.randrange(len(other))
            content = content[:place] + other[begin : begin + chance.choice([8, 100, 1 << 20])] + content[place:]
    return content


def _number(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
