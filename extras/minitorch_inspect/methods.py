"""`show` and `explore`, also the methods of these names.

The code that draws is loaded for the first picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.modes.ways_in.inspection import Inspectable
from minitorch.modes.ways_in.stages import Stages

if TYPE_CHECKING:
    from .picture import Picture

LIMIT = 100  # operations and values in a picture by default; raising it draws larger graphs unsummarised


def show(what: Any, *args: Any, fused: bool = False, limit: int | None = LIMIT, **kwargs: Any) -> Picture:
    """A picture of a program: ``show(x, ...)``, or ``x.show(...)``.

    Args:
        what: one of

            - a `Graph`, a pass's or a session's, or a `Ledger`, such as ``f.ledger(x)``;
            - a jitted function, with arguments for it in `args` and `kwargs`: its graph as it is traced;
            - what ``f.stages(x)`` gives: the graph after the last pass;
            - a `Session`, with what would be fetched in `args`; without, its whole graph;
            - a `Module`, with example inputs: what its `forward` records, the calls of its parts as clusters;
            - a tensor that is pending in a `lazy` block, or a part of another recording: the operations behind it;
            - a tensor that was computed: the tape, which `backward` would go through;
            - the object of a `lazy` block, ``with mt.lazy() as pending``: all that is pending;
            - a list, tuple or dict of such tensors.
        fused: show the kernels that it is fused into, those of the ledger; of a function or module after its passes.
        limit: how many operations and values are drawn before they are summarised; they are too if the picture would
            be too wide to be read. The bodies of loops and branches, in frames, are left out first. None for all of
            them, however many.

    Returns:
        A `Picture`, which notebooks display. Nothing is run for it, tracing apart, and what is pending stays pending.

    Raises:
        TypeError: for anything else.
        ValueError: for `fused` where there are no kernels: on the tape.

    Example:
        >>> import minitorch as mt
        >>> f = mt.jit(lambda x: x.softmax(1))
        >>> f.show(mt.ones(8, 4), fused=True)
        <picture of <lambda>: 9 operations in 1 kernel>
        >>> w = mt.ones(3, requires_grad=True)
        >>> loss = (w * w).sum()
        >>> print(loss.show())
        the tape of loss: 2 operations
        the arrows show the way forward; backward goes the other way
        loss: f32[]
        %1 = reduce_sum(%0, dims=[0])  f32[]
        %0 = mul(w, w)                 f32[3]
        w                              f32[3], parameter
    """
    from .drawings.subjects import drawing_of
    from .picture import Picture

    return Picture.readable(drawing_of(what, args, kwargs, fused), limit)


def explore(what: Any, *args: Any, fused: bool = True, **kwargs: Any) -> Any:
    """A slider over the passes, then over the kernels, for notebooks: ``f.explore(x)``, or ``f.stages(x).explore()``.

    Values that survive a pass keep their place. Nodes that it added, removed or rewrote have a colour and an outline;
    hovering over a node shows its details. At the last positions kernels frame their nodes, beside the loops of the
    selected kernel.

    A large program is folded: modules, the backward pass and lines of the program are boxes, which a click opens and
    closes. So are loops and branches, of any program: inside is what they repeat. An overview shows which part is seen.
    The field for searching finds nodes by name, operation and line, and opens the boxes on the way to them. Kernels
    have no frames then, as their nodes may lie in several boxes.

    Args:
        what: a jitted function, with arguments for it in `args` and `kwargs`, or what ``f.stages(x)`` gives.
        fused: whether to go on to the kernels.

    Returns:
        A widget: a notebook shows it, and it asks for nothing from any network.

    Raises:
        TypeError: for anything else.
        ModuleNotFoundError: without anywidget or pygraphviz; the message names the extra to install.
        ValueError: for a program of more than twenty thousand operations and values.

    Example:
        >>> import minitorch as mt
        >>> f = mt.jit(lambda x: (x * 1 + 2).sum(1))
        >>> widget = f.explore(mt.ones(4, 8))
        >>> [position["title"] for position in widget.data["positions"]]
        ['traced', 'algebra', 'kernels', 'k0_reduce_sum']
    """
    stages = what.stages(*args, **kwargs) if isinstance(what, Inspectable) else what
    if not isinstance(stages, Stages):
        instead = "; trace a plain function first: mt.jit(f).explore(x)" if callable(what) else ""
        raise TypeError(
            "explore takes a jitted function with arguments, f.explore(x), or its stages, f.stages(x).explore(), "
            f"not {type(what).__name__}{instead}"
        )
    from .exploring.explorer import explored

    return explored(stages, fused)
