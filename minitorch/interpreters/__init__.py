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
from .eager import Eager, Observed, Observer, check_writeable, settled
from .observing import current_observer, current_recorder, for_one_line, observing
from .provenance import Trace, leaked, made_by, origins, origins_text
from .reads import Noting, Reads, is_rehearsal, note, noting, readers, rehearsing
from .recorder import ArrayMeta, Operation, Recorder, Timed
from .staging import Callback, Captured, Span, Staging, current_staging, not_copied
from .state import Autocast, Handle, Interpreter, current, interpreting, is_grad_enabled, run_silently, set_grad_enabled
from .views import ArgumentLayout, is_contiguous, layout_text, may_share, memory_owner, reshape_is_view, visible_strides

__all__ = [
    "ArgumentLayout",
    "ArrayMeta",
    "Autocast",
    "Callback",
    "Captured",
    "Eager",
    "Handle",
    "Interpreter",
    "Noting",
    "Observed",
    "Observer",
    "Operation",
    "Reads",
    "Recorder",
    "Span",
    "Staging",
    "Timed",
    "Trace",
    "autocasting",
    "bind",
    "block",
    "broadcast_shapes",
    "callback",
    "check_writeable",
    "concrete",
    "current",
    "current_autocast",
    "current_observer",
    "current_recorder",
    "current_staging",
    "decorated",
    "enter_autocast",
    "expand_operands",
    "for_one_line",
    "in_full_precision",
    "in_lower_precision",
    "interpreting",
    "is_contiguous",
    "is_grad_enabled",
    "is_rehearsal",
    "layout_text",
    "leaked",
    "leave_autocast",
    "made_by",
    "may_share",
    "memory_owner",
    "not_copied",
    "note",
    "noting",
    "number",
    "observing",
    "origins",
    "origins_text",
    "readers",
    "rehearsing",
    "reshape_is_view",
    "run_silently",
    "set_autocast",
    "set_grad_enabled",
    "settled",
    "staging_or_error",
    "twin",
    "visible_strides",
]
