"""Machine code: LLVM assembly in, object code for a target out, and object code as functions that Python can call.

It knows nothing about graphs or kernels: text goes in, addresses come out. The disk cache is between `compile_ir`
and `load` (see `minitorch.compiler.runtime.cache`).
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from ..target import Target, architecture

# --- text to machine code ---------------------------------------------------------------------------------------------

# llvmlite's linker for Windows is the older one, which needs code that can be far from its operands. Everywhere
# else code and constants are loaded as one piece, so constants can be operands.
JIT_LINK = sys.platform != "win32"
CODE_MODEL = {"reloc": "pic", "codemodel": "small"} if JIT_LINK else {"codemodel": "jitdefault"}


def _target_machine(target: Target) -> Any:
    _initialize()
    if target.architecture != architecture(llvm.get_default_triple()):
        _initialize_all()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=1, jit=not JIT_LINK, **CODE_MODEL
    )


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _initialize_all() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


# Target machines are not for two threads at once, and cost 0.2 ms: each is borrowed for one compilation. Their key
# is all that LLVM knows of the processor.
_machines: defaultdict[tuple[str, str, str], deque[Any]] = defaultdict(deque)


@contextmanager
def _borrow(target: Target) -> Iterator[Any]:
    idle = _machines[target.triple, target.cpu, target.features]
    try:
        machine = idle.pop()
    except IndexError:
        machine = _target_machine(target)
    yield machine
    idle.append(machine)  # one that raised is not used again


@contextmanager
def _module(text: str, target: Target) -> Iterator[tuple[Any, Any]]:
    """Provide the verified module and a target machine, in a new context, which ends with them.

    The text is already the code that we want: LLVM's passes are not run, only its code generator. LLVM's contexts never
    forget a type or a constant, so one that lives as long as the process would grow for ever.
    """
    with (
        _borrow(target) as machine,
        llvm.create_context() as context,
        llvm.parse_assembly(text, context) as module,
    ):
        module.verify()  # before anything else: a code generator that meets an ill-typed call ends the process
        yield module, machine


@cache
def _code_generator() -> Callable[..., Any]:
    """Return LLVM's code generator, without the lock that llvmlite puts round every call.

    The lock is for contexts that threads share. Here every compilation has its own context and target machine,
    which is all that LLVM requires; without the lock, two threads compile two kernels in the time of one.
    """
    locked = llvm.ffi.lib.LLVMPY_TargetMachineEmitToMemory
    function = ctypes.CDLL(llvm.ffi.lib._name).LLVMPY_TargetMachineEmitToMemory
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def compile_ir(text: str, target: Target) -> bytes:
    """Compile a module to object code.

    Args:
        text: a module in LLVM's assembly language.
        target: the machine that the code is for.

    Raises:
        RuntimeError: if the text does not parse or is not well-formed; the message is LLVM's.
    """
    with _module(text, target) as (module, machine), llvm.ffi.OutputString() as error:
        buffer = _code_generator()(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
        try:
            library = llvm.ffi.lib
            return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
        finally:
            library.LLVMPY_DisposeMemoryBuffer(buffer)


def compile_all(texts: Iterable[str], target: Target, threads: int) -> list[bytes]:
    """Return `compile_ir` of each text, on up to `threads` threads, while the next texts are being made."""
    coming = iter(texts)
    first = list(itertools.islice(coming, 2))
    if len(first) < 2 or threads < 2:
        return [compile_ir(text, target) for text in (*first, *coming)]
    with ThreadPoolExecutor(threads, "minitorch-compile") as executor:
        return list(executor.map(lambda text: compile_ir(text, target), itertools.chain(first, coming)))


def assembly(text: str, target: Target) -> str:
    """Return a module in the target's assembly language, as a listing to read."""
    with _module(text, target) as (module, machine):
        return str(machine.emit_assembly(module))


# --- machine code to functions ----------------------------------------------------------------------------------------

# Every kernel is: void (i8** buffers, i64 begin, i64 end). ctypes releases the interpreter's lock during the call.
KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@cache
def _linker_target() -> Any:
    """Return the linker's target, which needs the architecture only; naming no features saves most of its time."""
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(**CODE_MODEL)


def _linkers() -> Iterator[tuple[Any, str]]:
    """Yield a linker for each library, and the library's name in it.

    A linker takes 140 KB and 0.2 ms, so libraries share one; it keeps 9 KB of every library it ever had, so not
    too many do. It ends with the last of them.
    """
    while True:
        linker = llvm.create_lljit_compiler(_linker_target(), use_jit_link=JIT_LINK, suppress_errors=True)
        for number in range(32):
            yield linker, f"minitorch.{number}"


_next_linker, _one_at_a_time = _linkers(), threading.Lock()


class Library:
    """Loaded object code. It stays in memory as long as the library or one of its functions is referenced."""

    def __init__(self, machine_code: bytes, names: Iterable[str]) -> None:
        with _one_at_a_time:
            linker, own_name = next(_next_linker)
        builder = llvm.JITLibraryBuilder().add_object_img(machine_code).add_current_process()
        for name in names:
            builder.export_symbol(name)
        self._code = builder.link(linker, own_name)  # holds on to the linker

    def address(self, name: str) -> int:
        """Return the address of one of the functions, good for as long as the library lives."""
        return int(self._code[name])

    def function(self, name: str, prototype: Any = KERNEL) -> Any:
        """Return one of the functions as a ctypes object, which keeps the library alive."""
        function = prototype(self.address(name))
        function.library, function.address = self, self.address(name)
        return function


def load(machine_code: bytes, *names: str) -> Library:
    """Load the named functions of some object code, ready to be called.

    Raises:
        RuntimeError: if this is no object code for this machine, or a function is missing, here or where it is called.

    Example:
        >>> from minitorch.compiler.codegen.host import host
        >>> code = compile_ir("define i32 @twice(i32 %x) { %y = shl i32 %x, 1  ret i32 %y }", host())
        >>> library = load(code, "twice")
        >>> library.function("twice", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32))(21)
        42
    """
    return Library(machine_code, names)
