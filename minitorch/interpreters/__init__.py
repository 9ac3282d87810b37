"""Interpreters: `Eager` computes a primitive when it is applied, `Staging` records it as a node.

    handler              decides how marked functions are called          `handling`
    ──── the tape ────   `bind` records, if a gradient may be asked for   `binding`
    layers               each handles a primitive or passes it on         `watching`
    Eager or Staging     computes, or records                             `eager`, `staging`

Every operation of every mode goes through `bind`, which calls the top of the thread's stack of interpreters. The tape
is the same for all of them, so `backward` can itself be recorded into a graph. This state belongs to the thread: two
threads with different modes do not disturb each other.
"""

from .binding import bind, callback, concrete, number, twin
from .blocks import block, decorated
from .broadcasting import broadcast_shapes, expand_operands
from .eager import Eager, check_writeable, explained, settled
from .handling import HANDLED, current_handler, handled, handling, set_handler
from .provenance import Trace, leaked, made_by, origins, origins_text
from .staging import Callback, Captured, Span, Staging, not_copied
from .state import (
    Handle,
    Handler,
    Interpreter,
    current,
    current_staging,
    interpreting,
    is_grad_enabled,
    run_silently,
    set_grad_enabled,
)
from .views import (
    ArgumentLayout,
    is_contiguous,
    layout_text,
    may_share,
    memory_owner,
    reshape_is_view,
    shares_memory,
    visible_strides,
)
from .watching import Layer, Watcher, current_watcher, for_one_line, observing, on_top, span, watching

__all__ = [
    "HANDLED", "ArgumentLayout", "Callback", "Captured", "Eager", "Handle", "Handler", "Interpreter", "Layer",
    "Span", "Staging", "Trace", "Watcher", "bind", "block", "broadcast_shapes", "callback", "check_writeable",
    "concrete", "current", "current_handler", "current_staging", "current_watcher", "decorated", "expand_operands",
    "explained", "for_one_line", "handled", "handling", "interpreting", "is_contiguous", "is_grad_enabled",
    "layout_text", "leaked", "made_by", "may_share", "memory_owner", "not_copied", "number", "observing", "on_top",
    "origins", "origins_text", "reshape_is_view", "run_silently", "set_grad_enabled", "set_handler", "settled",
    "shares_memory", "span", "twin", "visible_strides", "watching",
]  # fmt: skip
