"""Outputs of a cell, as a notebook keeps them, made of messages that may have been forged."""

from __future__ import annotations

import base64
import re
from typing import Any

from .inside.channel import SHOWN
from .receiver import TamperedError

Message = dict[str, Any]

PIXELS = 8_000_000  # of a picture; a browser takes four bytes for each
PIXELS_LIKE_A_CHARACTER = 32  # so that all pictures of a submission are at most 134 million pixels (`Limits.outputs`)
PICTURE = "image/png"
HEADER = re.compile(rb"\x89PNG\r\n\x1a\n\0\0\0\rIHDR(.{4})(.{4})", re.DOTALL)


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
    """The forms of an output that can be shown to an instructor: HTML and SVG may hold programs, and pictures are PNG.

    A browser goes by the content of a picture, whatever form it is said to have, and takes four bytes for each pixel.
    """
    shown = {form: data[form] for form in SHOWN if isinstance(data.get(form), str)}
    if PICTURE in shown:
        pixels = _pixels(shown.pop(PICTURE))
        if 0 < pixels <= PIXELS:
            return {**shown, PICTURE: data[PICTURE].replace("\n", "")}
        too_many = f"of {pixels / 1e6:.0f} million pixels, where up to {PIXELS / 1e6:.0f} million are shown"
        said = f"(a picture {too_many if pixels else 'that is no PNG'})"
        shown["text/plain"] = f"{shown.get('text/plain', '')}\n{said}".strip()
    return shown


def _pixels(text: str) -> int:
    """How many pixels a picture in base64 has, as its first chunk says (RFC 2083, IHDR); 0 for what is no PNG."""
    try:
        found = HEADER.match(base64.b64decode(text.replace("\n", ""), validate=True))
    except ValueError:
        return 0
    return int.from_bytes(found[1]) * int.from_bytes(found[2]) if found else 0


def length(content: Any) -> int:
    """About how many characters there are in an output; pictures count as a part of what they become on a page."""
    match content:
        case dict():
            pixels = _pixels(content.get(PICTURE, "")) // PIXELS_LIKE_A_CHARACTER
            return pixels + sum(len(key) + length(value) for key, value in content.items())
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
