"""Interpreters: Eager computes a primitive when it is applied, Staging records it as a node.

Every operation of every mode goes through `bind`. It asks the thread's current interpreter for the result and, if a
gradient may be asked for later, records the application on the tape; the tape is the same for both interpreters, which
is why `backward` can itself be recorded into a graph.

Which interpreter is current, and whether the tape records, belongs to the thread: two threads with different modes do
not disturb each other.
"""

from .autocast import (
    autocasting,
    current_autocast,
    enter_autocast,
    in_full_precision,
    in_lower_precision,
    leave_autocast,
    set_autocast,
)
from .binding import bind, callback, concrete, number, staging_or_error, twin
from .blocks import block, decorated
from .broadcasting import broadcast_shapes, expand_operands
from .eager import Eager, check_writeable, explained, settled
from .provenance import Trace, leaked, made_by, origins, origins_text
from .staging import Callback, Captured, Span, Staging, not_copied
from .state import (
    Autocast,
    Handle,
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
    "ArgumentLayout",
    "Autocast",
    "Callback",
    "Captured",
    "Eager",
    "Handle",
    "Interpreter",
    "Layer",
    "Span",
    "Staging",
    "Trace",
    "Watcher",
    "autocasting",
    "bind",
    "block",
    "broadcast_shapes",
    "callback",
    "check_writeable",
    "concrete",
    "current",
    "current_autocast",
    "current_staging",
    "current_watcher",
    "decorated",
    "enter_autocast",
    "expand_operands",
    "explained",
    "for_one_line",
    "in_full_precision",
    "in_lower_precision",
    "interpreting",
    "is_contiguous",
    "is_grad_enabled",
    "layout_text",
    "leaked",
    "leave_autocast",
    "made_by",
    "may_share",
    "memory_owner",
    "not_copied",
    "number",
    "observing",
    "on_top",
    "origins",
    "origins_text",
    "reshape_is_view",
    "run_silently",
    "set_autocast",
    "set_grad_enabled",
    "settled",
    "shares_memory",
    "span",
    "staging_or_error",
    "twin",
    "visible_strides",
    "watching",
]
