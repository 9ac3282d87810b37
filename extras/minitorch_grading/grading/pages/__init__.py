"""The pages of grading, as Jinja templates: what a template is given becomes text, and never HTML.

Every page is `base.html` with other parts. It is one file that asks for nothing: a policy in its head forbids every
request, and there are no scripts.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..plain import plain

if TYPE_CHECKING:
    from jinja2 import Environment


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
        return value if isinstance(value, Markup) else plain(str(value))

    return Environment(
        loader=PackageLoader(__name__, "."),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
