"""What other compilers make of it: Inductor of a call, and LLVM's own passes of a kernel.

Of PyTorch that is the operations of eager mode, and the kernels that Inductor has written.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from minitorch.compiler.target import Target

from .pytorch import NoCompilerError

Call = Callable[[], Any]


def torch_counts(torch: Any, call: Call) -> tuple[int, int]:
    """How many operations a call dispatches that compute something, and the bytes that these read and write."""
    from torch.utils._python_dispatch import TorchDispatchMode  # type: ignore[import-not-found, unused-ignore]

    found = [0, 0]

    class Counting(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            if not (function.is_view or any(word in str(function) for word in ("empty", "detach", "profiler"))):
                values = torch.utils._pytree.tree_leaves((args, kwargs, result))
                tensors = [each for each in values if isinstance(each, torch.Tensor)]
                if result is None and function._schema.is_mutable:  # what it writes, it was given first
                    tensors += torch.utils._pytree.tree_leaves(args[0])
                found[0] += 1
                found[1] += sum(each.numel() * each.element_size() for each in tensors)
            return result

    with Counting():
        call()
    return found[0], found[1]


HIDDEN = re.compile(r"^.*(?:#include|div_error|div_if|integer_div).*\n", re.MULTILINE)
CALLED = re.compile(r"^\s+(?:\w+ = )?((?:cpp_fused|extern_kernels|torch\.ops|aten)[\w.]*)\(", re.MULTILINE)


def inductor(torch: Any, call: Call, simdlen: int | None = None) -> SimpleNamespace:
    """What Inductor makes of a call that runs a compiled function.

    Args:
        torch: the module.
        call: runs the function. It is compiled anew, and stays so.
        simdlen: bits of a vector, 256 or 512; by default those of the processor.

    Returns:
        ``kernels``, the names of what its programs call; ``bytes``, which it counts for them; ``loops``, the source of
        the kernels that it has written, without what only checks for a division of integers by 0.

    Raises:
        NoCompilerError: if the system has no compiler for this source.
    """
    from unittest import mock

    if not has_compiler():
        raise NoCompilerError("Inductor finds no compiler on this system")
    graphs = import_module("torch._inductor.graph").GraphLowering
    virtualized = import_module("torch._inductor.virtualized").V
    programs: dict[str, int] = {}

    def save(code: str) -> None:
        programs[code] = virtualized.graph.count_bytes()[0]

    settings = import_module("torch._inductor.config"), import_module("torch._functorch.config")
    with (
        warnings.catch_warnings(),
        mock.patch.object(graphs, "save_output_code", save),
        settings[0].patch({"fx_graph_cache": False, "cpp.simdlen": simdlen}),
        settings[1].patch(enable_autograd_cache=False),
    ):
        warnings.simplefilter("ignore")  # PyTorch's own use of what it has deprecated
        torch._dynamo.reset()
        call()
    kernels = [
        name for code in programs for name in CALLED.findall(code.split("def call(", 1)[1].split("\nrunner", 1)[0])
    ]
    loops = [_readable(text) for code in programs for text in re.findall(r"r'''\n(.*?)'''", code, re.DOTALL)]
    return SimpleNamespace(kernels=kernels, bytes=sum(programs.values()), loops=loops)


def _readable(text: str) -> str:
    """A kernel's source with plain integers and short names."""
    text = re.sub(r"static_cast<int64_t>\((\w+?)L?\)", r"\1", HIDDEN.sub("", text))
    return text.replace("at::vec::Vectorized", "Vectorized").rstrip()


def has_compiler() -> bool:
    """Whether Inductor finds a compiler for what it writes; PyTorch has to be installed."""
    try:
        import_module("torch._inductor.cpp_builder").get_cpp_compiler()
    except RuntimeError:
        return False
    return True


def optimised(text: str, target: Target) -> str:
    """Return a module after all of LLVM's passes.

    Args:
        text: a module in LLVM's assembly language.
        target: the machine that it is for.

    Raises:
        RuntimeError: if the text does not parse or is not well-formed; the message is LLVM's.

    Example:
        >>> from minitorch import course
        >>> from minitorch.compiler.target import target_named
        >>> text = "define i32 @six() { %a = add i32 2, 2  %b = add i32 %a, 2  ret i32 %b }"
        >>> "ret i32 6" in course.optimised(text, target_named("avx2"))
        True
    """
    import llvmlite.binding as llvm  # takes a while

    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(target.cpu, target.features, opt=3)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.verify()
        options = llvm.create_pipeline_tuning_options(3)
        options.loop_vectorization = options.slp_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return str(module)
