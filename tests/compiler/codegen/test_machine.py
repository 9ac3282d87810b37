"""Text in, machine code out: only what is well-formed, for this host, and gone from memory when nobody uses it."""

from __future__ import annotations

import ctypes
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from llvmlite import binding as llvm

from minitorch.compiler.codegen import host as host_module
from minitorch.compiler.codegen import machine
from minitorch.compiler.codegen.host import host
from minitorch.compiler.runtime import cache
from minitorch.compiler.target import TARGETS

INT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def plus(number: int) -> str:
    return f"define i64 @plus(i64 %x) {{ %y = add i64 %x, {number}  ret i64 %y }}"


SQUARES = """
define void @squares(ptr noalias %buffers, i64 %begin, i64 %end) {
entry:
  %x = load ptr, ptr %buffers
  %second = getelementptr ptr, ptr %buffers, i64 1
  %y = load ptr, ptr %second
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %value = load float, ptr %from
  %square = fmul float %value, %value
  store float %square, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""


def test_a_kernel_runs_on_its_part_of_the_buffers() -> None:
    kernel = machine.load(machine.compile_ir(SQUARES, host()), "squares").function("squares")
    x, y = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
    kernel((ctypes.c_void_p * 2)(ctypes.addressof(x), ctypes.addressof(y)), 1, 3)
    assert list(y) == [0, 4, 9, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define void @f( {", "expected type"),
        ("define void @f() { ret i64 0 }", "doesn't match"),
        # The code generator ends the process when it meets this one.
        (
            "declare float @llvm.fma.f32(i32, float, float)\n"
            "define void @f() { %x = call float @llvm.fma.f32(i32 1, float 1.0, float 1.0) ret void }",
            "argument type",
        ),
    ],
)
def test_text_that_is_not_well_formed_is_refused(text: str, message: str) -> None:
    for function in (machine.compile_ir, machine.assembly):
        with pytest.raises(RuntimeError, match=message):
            function(text, host())
    assert machine.compile_ir(plus(1), host())  # and harms nobody


def test_object_code_that_cannot_run_is_refused() -> None:
    code = machine.compile_ir(plus(1), host())
    missing = machine.compile_ir("declare void @nowhere()  define void @f() { call void @nowhere()  ret void }", host())
    for wrong, name in ((b"", "plus"), (b"no code", "plus"), (code[:100], "plus"), (code, "minus"), (missing, "f")):
        with pytest.raises(RuntimeError):
            machine.load(wrong, name)


def test_the_c_library_can_be_called() -> None:
    code = machine.compile_ir(
        "declare double @tanh(double)\n"
        "define double @f(double %x) { %y = call double @tanh(double %x)  ret double %y }",
        host(),
    )
    function = machine.load(code, "f").function("f", ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double))
    assert abs(function(0.5) - 0.46211715726000973) < 1e-15


def test_a_function_keeps_its_library() -> None:
    library = machine.load(machine.compile_ir(plus(2), host()), "plus")
    alive = weakref.ref(library)
    function = library.function("plus", INT)
    assert function.address == library.address("plus")
    del library
    gc.collect()
    assert alive() is not None and function(40) == 42
    del function
    gc.collect()
    assert alive() is None


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say how much memory we have")
def test_functions_that_are_dropped_leave_no_memory_behind() -> None:
    def make(first: int) -> None:
        for number in range(first, first + 200):
            assert machine.load(machine.compile_ir(plus(number), host()), "plus").function("plus", INT)(1) == number + 1

    make(0)  # what LLVM needs once
    gc.collect()
    before = _resident()
    make(200)
    gc.collect()
    assert _resident() - before < 1 << 20  # kept, they are 8 MB


def test_threads_compile_at_the_same_time() -> None:
    texts = [plus(number) for number in range(40)]
    alone = [machine.compile_ir(text, host()) for text in texts]
    assert machine.compile_all(texts, host(), 3) == alone
    with ThreadPoolExecutor(4) as executor:  # and load
        results = executor.map(lambda code: machine.load(code, "plus").function("plus", INT)(2), alone)
        assert list(results) == list(range(2, 42))


def test_compile_all_reports_the_first_mistake() -> None:
    with pytest.raises(RuntimeError, match="expected type"):
        machine.compile_all([plus(1), "define void @f( {", plus(2)], host(), 2)


def test_listings() -> None:
    assert "squares" in machine.assembly(SQUARES, host())


def test_the_host() -> None:
    here = host()
    assert here.vector_bytes in (16, 32, 64) and here.vector_registers >= 16 and here.cores >= 1
    assert 0 < here.caches[0] <= here.caches[1] and here.caches[2] > 0
    assert here.lanes(4) * 4 == here.vector_bytes and here.lanes(1 << 20) == 1


def test_a_target_restricts_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """What LLVM is told of is the processor of the target and its features, which all belong to this machine's too."""
    own = set(llvm.get_host_cpu_features().flatten().split(","))
    keys, sizes = set(), []
    for target in host_module.executable_targets():
        monkeypatch.setenv("MINITORCH_TARGET", target)
        found = host_module.host.__wrapped__()
        monkeypatch.setattr(cache, "host", lambda found=found: found)
        keys.add(cache.key("text"))
        sizes.append(found.vector_bytes)
        assert found.name == target and set(found.features.split(",")) <= own
        assert target == "native" or found.cpu == TARGETS[target].cpu
    assert len(keys) == len(sizes) and sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("name", "executable", "message"),
    [
        ("sse3", ("native", "sse2"), "MINITORCH_TARGET='sse3' is not a target: .* one of native, sse2"),
        ("avx512", ("native", "avx2", "sse2"), "needs instructions that this machine does not have: .* native, avx2"),
        ("sse2", ("native",), "needs instructions that this machine does not have: .* one of native"),
    ],
)
def test_a_target_that_cannot_be_run_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, executable: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr(host_module, "executable_targets", lambda: executable)
    monkeypatch.setenv("MINITORCH_TARGET", name)
    with pytest.raises(ValueError, match=message):
        host_module.host.__wrapped__()


def test_cache_sizes(tmp_path: Path) -> None:
    assert host_module.cache_sizes(tmp_path / "nothing") == tuple(host_module.CACHE_DEFAULTS.values())
    rows = [("1", "Data", "48K"), ("1", "Instruction", "64K"), ("2", "Unified", "2048K"), ("3", "Unified", "what")]
    for number, row in enumerate(rows):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in zip(("level", "type", "size"), row, strict=True):
            (folder / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()  # without files
    assert host_module.cache_sizes(tmp_path) == (48 << 10, 2 << 20, host_module.CACHE_DEFAULTS[3])


@pytest.mark.parametrize(
    ("quota", "most"), [("max 100000", None), ("150000 100000", 2), ("1000 100000", 1), ("", None)]
)
def test_a_quota_limits_the_cores(tmp_path: Path, quota: str, most: int | None) -> None:
    everything = host_module.usable_cores(tmp_path / "nothing")
    (tmp_path / "cpu.max").write_text(quota)
    assert host_module.usable_cores(tmp_path / "cpu.max") == min(everything, most or everything)
