"""The work queue of `minitorch.compiler.runtime.threads`, which threads serve without the GIL, as LLVM assembly.

A board in shared memory describes the job; a free thread takes its next part. Waiting, posting a job and taking a part
are a few instructions each, so two threads share a kernel of ten microseconds and gain.
"""

from __future__ import annotations

import ctypes
import sys

from ..codegen.host import host

# The processor's hint in a spin loop, and the system call that yields the core.
PAUSE = {"x86_64": "llvm.x86.sse2.pause()", "aarch64": "llvm.aarch64.hint(i32 1)"}
YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"

# The shared board. Word 0: the number of the job, in its upper half, and of the next part, in its
# lower; word 8: how many parts are done; word 16 and on: the job. It is written when no part of the one before is left,
# so a thread that wins a part by compare-and-exchange has read the job that the part belongs to.
FIELDS = ("kernel", "buffers", "extent", "step", "parts")
NATIVE = """
%board = type { i64, [7 x i64], i64, [7 x i64], i64, i64, i64, i64, i64 }
declare i64 @llvm.umin.i64(i64, i64)
declare i32 @@YIELD@()
@DECLARE_PAUSE@

; One round of spinning; every 64th yields the core.
define internal void @rest(i64 %round) {
  @CALL_PAUSE@
  %some = and i64 %round, 63
  %time = icmp eq i64 %some, 63
  br i1 %time, label %yield, label %end
yield:
  %ignored = call i32 @@YIELD@()
  br label %end
end:
  ret void
}

; Run parts of the job until none is left.
define internal void @help(ptr %board, i64 %job) {
  %done = getelementptr %board, ptr %board, i64 0, i32 2
@ADDRESSES@
  br label %claim
claim:
  %word = load atomic i64, ptr %board acquire, align 8
  %now = lshr i64 %word, 32
  %part = and i64 %word, 4294967295
@LOADS@
  %same = icmp eq i64 %now, %job
  %left = icmp ult i64 %part, %parts
  %go = and i1 %same, %left
  br i1 %go, label %try, label %end
try:
  %next = add i64 %word, 1
  %pair = cmpxchg ptr %board, i64 %word, i64 %next acq_rel monotonic
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %run, label %claim
run:
  %extent_less = sub i64 %extent, 1
  %whole = add i64 %extent_less, %step
  %steps = udiv i64 %whole, %step
  %after = add i64 %part, 1
  %a = mul i64 %part, %steps
  %b = mul i64 %after, %steps
  %c = udiv i64 %a, %parts
  %d = udiv i64 %b, %parts
  %begin = mul i64 %c, %step
  %most = mul i64 %d, %step
  %finish = call i64 @llvm.umin.i64(i64 %most, i64 %extent)
  %function = inttoptr i64 %kernel to ptr
  call void %function(i64 %buffers, i64 %begin, i64 %finish)
  %before = atomicrmw add ptr %done, i64 1 release
  br label %claim
end:
  ret void
}

; A worker: help with every job, until none has come for so many rounds. The result is the last job's number.
define i64 @serve(ptr %board, i64 %last, i64 %patience) {
  br label %again
again:
  %job = phi i64 [ %last, %0 ], [ %now, %work ]
  br label %look
look:
  %round = phi i64 [ 0, %again ], [ %more, %wait ]
  %word = load atomic i64, ptr %board acquire, align 8
  %now = lshr i64 %word, 32
  %same = icmp eq i64 %now, %job
  br i1 %same, label %wait, label %work
work:
  call void @help(ptr %board, i64 %now)
  br label %again
wait:
  call void @rest(i64 %round)
  %more = add i64 %round, 1
  %enough = icmp uge i64 %more, %patience
  br i1 %enough, label %sleep, label %look
sleep:
  ret i64 %job
}

; The caller: whether all parts are done, at the latest after so many rounds.
define i64 @finished(ptr %board, i64 %patience) {
  %done = getelementptr %board, ptr %board, i64 0, i32 2
  %count = getelementptr %board, ptr %board, i64 0, i32 8
  %parts = load i64, ptr %count
  br label %look
look:
  %round = phi i64 [ 0, %0 ], [ %more, %wait ]
  %so_far = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %so_far, %parts
  br i1 %all, label %end, label %wait
wait:
  @CALL_PAUSE@
  %more = add i64 %round, 1
  %enough = icmp uge i64 %more, %patience
  br i1 %enough, label %end, label %look
end:
  %result = zext i1 %all to i64
  ret i64 %result
}

; The caller: post a job, help with it, and wait until all parts are done.
define i64 @lead(ptr %board, i64 %job, i64 %kernel, i64 %buffers, i64 %extent, i64 %step, i64 %parts, i64 %patience) {
  %done = getelementptr %board, ptr %board, i64 0, i32 2
@ADDRESSES@
@STORES@
  store atomic i64 0, ptr %done monotonic, align 8
  %word = shl i64 %job, 32
  store atomic i64 %word, ptr %board release, align 8
  call void @help(ptr %board, i64 %job)
  %result = call i64 @finished(ptr %board, i64 %patience)
  ret i64 %result
}
"""
BYTES = 64 * 3

_INT, _POINTER = ctypes.c_int64, ctypes.c_void_p
PROTOTYPES = {
    "serve": ctypes.CFUNCTYPE(_INT, _POINTER, _INT, _INT),
    "finished": ctypes.CFUNCTYPE(_INT, _POINTER, _INT),
    "lead": ctypes.CFUNCTYPE(_INT, _POINTER, *[_INT] * 7),
}


def text() -> str:
    """Return the module, for this host."""
    pause = PAUSE.get(host().architecture, "")
    name = pause.split("(")[0]
    texts = {
        "YIELD": YIELD,
        "DECLARE_PAUSE": f"declare void @{name}({'i32' if 'i32' in pause else ''})" if pause else "",
        "CALL_PAUSE": f"call void @{pause}" if pause else "",
        "ADDRESSES": "\n".join(
            f"  %to_{field} = getelementptr %board, ptr %board, i64 0, i32 {number}"
            for number, field in enumerate(FIELDS, 4)
        ),
        "LOADS": "\n".join(f"  %{field} = load atomic i64, ptr %to_{field} monotonic, align 8" for field in FIELDS),
        "STORES": "\n".join(f"  store atomic i64 %{field}, ptr %to_{field} monotonic, align 8" for field in FIELDS),
    }
    result = NATIVE
    for mark, text in texts.items():
        result = result.replace(f"@{mark}@", text)
    return result
