"""The driver: native code, as LLVM assembly, that finds a call's arrays in memory and runs its kernels one by one.

In Python a kernel costs about a microsecond to call, and an array a quarter of one to find. Here both cost a few
instructions, so a graph of many small kernels is one call. With kernels called from Python, their tables of addresses
made by NumPy, ``x + 1`` takes 75 % longer (AVX2 and AVX-512 alike), a training step of a recurrent network of 60 steps
5 % (AVX2) or 11 % (AVX-512). A program is a list of words, made once:

    program  places | arrays | kernels | the flags that each array must have | a record for each kernel
    record   function | extent | buffers | place and offset of each buffer

The places are addresses of memory: the 0th is 0 (a fixed address, as of a constant, is an offset from it), the next
ones are those of the arrays of the call, further ones the caller's. The last of the arrays is the arena; its address is
rounded up.
"""

from __future__ import annotations

import ctypes
from functools import cache
from string import Template
from typing import Any

from ..kernels.arena import ALIGNMENT
from . import cache as code_cache
from .memory_pool import DATA, FLAGS

CONTIGUOUS, WRITEABLE = 0x1, 0x400  # bits of a NumPy array's flags
HEADER = 3  # words of a program before the flags

NATIVE = """
; A call is the address of its program and, after it, those of its arrays, which are NumPy's objects. This finds the
; places of the arrays. The result is -1 if one of them does not have the flags that it must have, or 0.
define i64 @look(ptr %call, ptr %places) {
  %program = load ptr, ptr %call
  %to_count = getelementptr i64, ptr %program, i64 1
  %count = load i64, ptr %to_count
  store i64 0, ptr %places
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %missing = phi i64 [ 0, %0 ], [ %all_missing, %body ]
  %data = phi i64 [ 0, %0 ], [ %found, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %next = add i64 %i, 1
  %to_object = getelementptr ptr, ptr %call, i64 %next
  %object = load ptr, ptr %to_object
  %to_data = getelementptr i8, ptr %object, i64 $DATA
  %found = load i64, ptr %to_data
  %to_place = getelementptr i64, ptr %places, i64 %next
  store i64 %found, ptr %to_place
  %to_flags = getelementptr i8, ptr %object, i64 $FLAGS
  %flags = load i32, ptr %to_flags
  %needed_at = add i64 %i, $HEADER
  %to_needed = getelementptr i64, ptr %program, i64 %needed_at
  %needed = load i64, ptr %to_needed
  %wide = zext i32 %flags to i64
  %lacks = xor i64 %wide, -1
  %own_missing = and i64 %needed, %lacks
  %all_missing = or i64 %missing, %own_missing
  br label %head
end:
  %up = add i64 %data, $LESS
  %arena = and i64 %up, -$ALIGNMENT
  %to_arena = getelementptr i64, ptr %places, i64 %count
  store i64 %arena, ptr %to_arena
  %wrong = icmp ne i64 %missing, 0
  %result = sext i1 %wrong to i64
  ret i64 %result
}

; A part of a kernel's range: `part` is what the threads call. The context is the kernel's record, the places, a word in
; which is noted that an index was out of range, and one in which the parts count what they have done. A kernel notes an
; index in a word that no other thread writes to.
define void @part(ptr %context, i64 %begin, i64 %end) {
  %record = load ptr, ptr %context
  %to_places = getelementptr ptr, ptr %context, i64 1
  %places = load ptr, ptr %to_places
  %trouble = getelementptr ptr, ptr %context, i64 2
  %function = load ptr, ptr %record
  %to_count = getelementptr i64, ptr %record, i64 2
  %count = load i64, ptr %to_count
  %pairs = getelementptr i64, ptr %record, i64 3
  %room = add i64 %count, 2
  %table = alloca ptr, i64 %room
  %own = alloca i64
  store i64 0, ptr %own
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %go
body:
  %next = add i64 %i, 1
  %twice = shl i64 %i, 1
  %to_slot = getelementptr i64, ptr %pairs, i64 %twice
  %slot = load i64, ptr %to_slot
  %to_offset = getelementptr i64, ptr %to_slot, i64 1
  %offset = load i64, ptr %to_offset
  %to_place = getelementptr i64, ptr %places, i64 %slot
  %place = load i64, ptr %to_place
  %sum = add i64 %place, %offset
  %to_entry = getelementptr i64, ptr %table, i64 %i
  store i64 %sum, ptr %to_entry
  br label %head
go:
  %to_own = getelementptr ptr, ptr %table, i64 %count
  store ptr %own, ptr %to_own
  %to_done = getelementptr ptr, ptr %to_own, i64 1
  %done = getelementptr ptr, ptr %context, i64 3
  store ptr %done, ptr %to_done
  call void %function(ptr %table, i64 %begin, i64 %end)
  %noted = load i64, ptr %own
  %fine = icmp eq i64 %noted, 0
  br i1 %fine, label %end_of_part, label %note
note:
  %before = atomicrmw or ptr %trouble, i64 %noted monotonic
  br label %end_of_part
end_of_part:
  ret void
}

; Some kernels, one after another. The result is the number of the one that was asked for an index out of range, or 0.
define i64 @kernels(ptr %records, i64 %count, ptr %places) {
  %context = alloca [4 x i64]
  %to_places = getelementptr i64, ptr %context, i64 1
  store ptr %places, ptr %to_places
  %trouble = getelementptr i64, ptr %context, i64 2
  store i64 0, ptr %trouble
  %done = getelementptr i64, ptr %context, i64 3
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %record = phi ptr [ %records, %0 ], [ %after, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %next = add i64 %i, 1
  store ptr %record, ptr %context
  store i64 0, ptr %done
  %to_extent = getelementptr i64, ptr %record, i64 1
  %extent = load i64, ptr %to_extent
  call void @part(ptr %context, i64 0, i64 %extent)
  %to_buffers = getelementptr i64, ptr %record, i64 2
  %buffers = load i64, ptr %to_buffers
  %words = shl i64 %buffers, 1
  %length = add i64 %words, 3
  %after = getelementptr i64, ptr %record, i64 %length
  %noted = load i64, ptr %trouble
  %fine = icmp eq i64 %noted, 0
  br i1 %fine, label %head, label %stop
stop:
  ret i64 %next
end:
  ret i64 0
}

; Kernels that are repeated. After each repetition the places move by the first or by the second row of `turns`, in
; turn. The result is that of `kernels`.
define i64 @repeat(ptr %records, i64 %count, ptr %places, ptr %turns, i64 %room, i64 %trips) {
  br label %head
head:
  %trip = phi i64 [ 0, %0 ], [ %next, %moved ]
  %more = icmp ult i64 %trip, %trips
  br i1 %more, label %body, label %end
body:
  %result = call i64 @kernels(ptr %records, i64 %count, ptr %places)
  %fine = icmp eq i64 %result, 0
  br i1 %fine, label %go, label %stop
go:
  %next = add i64 %trip, 1
  %row = and i64 %trip, 1
  %skip = mul i64 %row, %room
  %turn = getelementptr i64, ptr %turns, i64 %skip
  br label %move
move:
  %i = phi i64 [ 0, %go ], [ %after, %move ]
  %after = add i64 %i, 1
  %to_place = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %to_place
  %to_turn = getelementptr i64, ptr %turn, i64 %i
  %by = load i64, ptr %to_turn
  %sum = add i64 %place, %by
  store i64 %sum, ptr %to_place
  %last = icmp eq i64 %after, %room
  br i1 %last, label %moved, label %move
moved:
  br label %head
stop:
  ret i64 %result
end:
  ret i64 0
}

; A whole program of kernels. The result is that of `look` if it is not 0, else that of `kernels`.
define i64 @run(ptr %call) {
  %program = load ptr, ptr %call
  %room = load i64, ptr %program
  %places = alloca i64, i64 %room
  %wrong = call i64 @look(ptr %call, ptr %places)
  %fine = icmp eq i64 %wrong, 0
  br i1 %fine, label %go, label %stop
go:
  %to_arrays = getelementptr i64, ptr %program, i64 1
  %arrays = load i64, ptr %to_arrays
  %to_count = getelementptr i64, ptr %program, i64 2
  %count = load i64, ptr %to_count
  %first = add i64 %arrays, $HEADER
  %records = getelementptr i64, ptr %program, i64 %first
  %result = call i64 @kernels(ptr %records, i64 %count, ptr %places)
  ret i64 %result
stop:
  ret i64 %wrong
}
"""

_INT, _POINTER = ctypes.c_int64, ctypes.c_void_p
PROTOTYPES: dict[str, Any] = {
    "look": ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER),
    "part": ctypes.CFUNCTYPE(None, _POINTER, _INT, _INT),
    "kernels": ctypes.CFUNCTYPE(_INT, _POINTER, _INT, _POINTER),
    "repeat": ctypes.CFUNCTYPE(_INT, _POINTER, _INT, _POINTER, _POINTER, _INT, _INT),
    "run": ctypes.CFUNCTYPE(_INT, _POINTER),
}
# For work of a few microseconds: keeps the GIL, which may take milliseconds to come back.
QUICK = ctypes.PYFUNCTYPE(_INT, _POINTER)


class Driver:
    """The functions of the module, as ctypes objects."""

    def __init__(self) -> None:
        text = Template(NATIVE).substitute(
            DATA=DATA, FLAGS=FLAGS, HEADER=HEADER, ALIGNMENT=ALIGNMENT, LESS=ALIGNMENT - 1
        )
        (library,) = code_cache.libraries([text], *PROTOTYPES)
        self.look, self.part, self.kernels, self.repeat, self.run = (
            library.function(*each) for each in PROTOTYPES.items()
        )
        self.run_quickly = library.function("run", QUICK)


@cache
def driver() -> Driver:
    """Return the driver of this process."""
    return Driver()
