"""The pages of grading, as Jinja templates: what a template is given becomes text, and never HTML.

Every page is `base.html` with other parts. It is one file that asks for nothing: a policy in its head forbids every
request, and there are no scripts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

# All of Unicode's categories Cc and Cs but tab, line feed and carriage return, and the controls of writing direction
# (UAX 9), by which a text can look like another one.
CONTROLS = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return a text with its control characters spelled out.

    Example:
        >>> print(printable(chr(27) + "[31m" + chr(0x202E) + "txt"))
        \\x1b[31m\\u202etxt
    """
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def render(template: str, **values: Any) -> str:
    """Return a page.

    Args:
        template: the name of a template in this folder, without its ending.
        values: what it is given. Texts are escaped; `markupsafe.Markup` alone is HTML.
    """
    return environment().get_template(f"{template}.html").render(values)


@cache
def environment() -> Environment:
    """Return the environment of all templates; every expression in them is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: object) -> object:
        return value if isinstance(value, Markup) else printable(str(value))

    return Environment(
        loader=PackageLoader(__name__, "."),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
