"""`panel`: a function beside controls for its sizes, its element type, threads, passes and classes of fusion.

In JupyterLab the panel is a widget: kernels, bytes, memory, time and pictures follow the controls. Where nobody can
click, in a run from top to bottom or without ipywidgets, it is one table and asks nothing. The engine does all that is
shown (`experiment`), and nothing leaves the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from minitorch.backends import get_num_threads
from minitorch.tables import Table

from ..predicting import is_answered_live
from .experiment import Controls, Experiment, Shape, Subject
from .panel_views import VIEWS, parts

DTYPES = ("float32", "float64", "float16", "bfloat16")
GROUPS = ("dtype", "threads", "passes", "fusion")  # of controls, besides the sizes


class Panel:
    """A function, its controls as they are at first, and the pictures of what they lead to. Made by `panel`.

    Attributes:
        subject: the function, and the shapes of its arguments.
        controls: as they are at first.
        dtypes: to choose from.
        groups: the controls that are there, of `GROUPS`.
        view: the picture that is shown first, of `VIEWS`.
    """

    def __init__(
        self, subject: Subject, controls: Controls, dtypes: Sequence[str], groups: Sequence[str], view: str
    ) -> None:
        self.subject, self.controls, self.dtypes, self.groups, self.view = subject, controls, dtypes, groups, view

    @cached_property
    def first(self) -> Experiment:
        """The experiment with the controls as they are at first."""
        return Experiment(self.subject, self.controls)

    def __repr__(self) -> str:
        name = getattr(self.subject.function, "__name__", type(self.subject.function).__name__)
        name = "" if name == "<lambda>" else f"{name}: "
        rows = [("", *self.first.costs), *self.first.rows]
        first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
        table = Table("  ".join([f"{{:{first}}}", *(f"{{:>{width}}}" for width in widths)]), rows)
        more = ["", parts(self.first)] if "each part" in self.views else []
        return "\n".join([f"{name}{self.controls}", str(table), self.first.verdict, *more])

    @property
    def views(self) -> list[str]:
        """The pictures that there are: what each part is worth is not asked where no part can be switched off."""
        has_parts = not {"passes", "fusion"}.isdisjoint(self.groups)
        return [view for view in VIEWS if view != "each part" or has_parts]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """A widget where somebody sits in front of the notebook, else the table."""
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if is_answered_live():
            from .panel_widget import widget

            bundle = {**widget(self), **bundle}
        return bundle


def panel(
    function: Callable[..., Any],
    *shapes: Shape,
    dtypes: Sequence[str] = DTYPES,
    groups: Sequence[str] = GROUPS,
    view: str = "kernels",
    **sizes: int,
) -> Panel:
    """Controls for a function beside its kernels, bytes and time, as the result of a cell.

    The function is traced with random arguments, compiled, and measured against its operations one by one. A change of
    a control does all of that again, once the reader has stopped clicking.

    Args:
        function: of tensors; it may use modules and tensors from outside.
        shapes: of its arguments, as tuples of numbers and of names of sizes.
        dtypes: of the arguments, to choose from; the first is taken at first.
        groups: the controls besides sizes: ``"dtype"``, ``"threads"``, ``"passes"``, ``"fusion"``.
        view: the picture that is shown first: ``"kernels"``, ``"ledger"``, ``"graph"``, ``"loops"`` or ``"each part"``.
        sizes: of the names in `shapes`, as they are at first.

    Raises:
        ValueError: for a name in `shapes` without a size, or the reverse, and for an unknown group or view.
        ImpossibleError: if the first sizes are too large for a panel.

    Example:
        >>> import minitorch as mt
        >>> from minitorch import course
        >>> found = course.panel(lambda x: x.softmax(1), ("rows", "columns"), rows=256, columns=1000)
        >>> for line in str(found).splitlines()[1:5]:
        ...     print(line)
                                 eager   all on
        kernels, or operations       9        1
        read                   5.12 MB  1.02 MB
        written                3.07 MB  1.02 MB
    """
    names = [each for shape in shapes for each in shape if isinstance(each, str)]
    if set(names) != set(sizes):
        raise ValueError(f"the shapes have the sizes {sorted(set(names))}, and given are {sorted(sizes)}")
    for kind, wanted, there in (("group", groups, GROUPS), ("view", [view], tuple(VIEWS))):
        if strange := [each for each in wanted if each not in there]:
            raise ValueError(f"there is no {kind} {strange[0]!r}; there is {', '.join(there)}")
    controls = Controls({name: sizes[name] for name in names}, dtypes[0], get_num_threads())
    return Panel(Subject(function, tuple(shapes)), controls, dtypes, groups, view)
