"""Base classes of what `minitorch.inspect` draws. It is a package beside the engine, loaded for the first picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .packages import load

if TYPE_CHECKING:
    from minitorch_inspect.picture import Picture


class Drawable:
    """An object that `minitorch.inspect` can draw."""

    __slots__ = ()

    def show(self, *args: Any, fused: bool = False, limit: int | None = 100, **kwargs: Any) -> Picture:
        """Return a picture of a program, which notebooks display; see `minitorch.inspect.show`.

        Args:
            args: arguments of the program, if it is a function or a module; `kwargs`, too.
            fused: show the kernels that it is fused into.
            limit: the number of operations and values drawn before they are summarised, or None.

        Example:
            >>> import minitorch as mt
            >>> mt.jit(lambda x: x.softmax(1)).show(mt.ones(8, 4), fused=True)
            <picture of <lambda>: 9 operations in 1 kernel>
        """
        picture: Picture = load("minitorch_inspect").show(self, *args, fused=fused, limit=limit, **kwargs)
        return picture


class Explorable(Drawable):
    """An object whose passes `minitorch.inspect` can step through."""

    __slots__ = ()

    def explore(self, *args: Any, fused: bool = True, **kwargs: Any) -> Any:
        """Return a widget with a slider over the passes, then over the kernels; see `minitorch.inspect.explore`."""
        return load("minitorch_inspect").explore(self, *args, fused=fused, **kwargs)
