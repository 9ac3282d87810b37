"""Outputs of a cell, as a notebook keeps them, made of messages that may have been forged."""

from __future__ import annotations

from typing import Any

from .inside.channel import SHOWN
from .receiver import TamperedError

Message = dict[str, Any]


def output_of(kind: str, content: Any) -> Message:
    """The output that a message is.

    Raises:
        TamperedError: if it has not the form of one.
    """
    match kind, content:
        case "stream", ["stdout" | "stderr" as name, str(text)]:
            return {"output_type": "stream", "name": name, "text": text}
        case "shown", dict():
            return {"output_type": "display_data", "data": harmless(content), "metadata": {}}
        case "result", dict():
            shown = harmless(content)
            return {"output_type": "execute_result", "data": shown, "metadata": {}, "execution_count": None}
        case "error", [str(name), str(value), list(lines)] if all(isinstance(line, str) for line in lines):
            return {"output_type": "error", "ename": name, "evalue": value, "traceback": lines}
    raise TamperedError(f"a message that is no output: {kind[:40]}")


def harmless(data: Message) -> Message:
    """The forms of an output that can be shown to an instructor: HTML and SVG may hold programs."""
    return {form: data[form] for form in SHOWN if isinstance(data.get(form), str)}


def length(content: Any) -> int:
    """About how many characters there are in an output."""
    match content:
        case dict():
            return sum(len(key) + length(value) for key, value in content.items())
        case list():
            return sum(map(length, content)) + len(content)
        case _:
            return len(str(content))


def merge(outputs: list[Message], output: Message) -> None:
    """Append an output, or its text to the last one if both are of one stream."""
    last = outputs[-1] if outputs else {}
    if output["output_type"] == "stream" and last.get("name") == output["name"]:
        last["text"] += output["text"]
    else:
        outputs.append(output)
