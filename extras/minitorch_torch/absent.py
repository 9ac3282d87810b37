"""What PyTorch has and minitorch has not: a sentence for each, with what is there instead."""

from __future__ import annotations

_COMPLEX = "complex numbers are left out: elements are bools, integers or floats"
_SPARSE = "sparse tensors are left out: keep them dense, or as indices and values for index_add and gather"
_INSIDE = "it is a part of PyTorch's own machinery"
_WORDS = "it is not there; mt.save and mt.load write and read weights, mt.profile shows times"

REASONS = {
    **dict.fromkeys(("complex", "complex32", "complex64", "complex128", "cfloat", "cdouble", "polar"), _COMPLEX),
    **dict.fromkeys(("view_as_complex", "view_as_real", "fft", "stft", "istft", "real", "imag", "conj"), _COMPLEX),
    **dict.fromkeys(("sparse", "sparse_coo_tensor", "sparse_csr_tensor"), _SPARSE),
    **dict.fromkeys(("_C", "_dynamo", "_inductor", "ops", "library", "classes"), _INSIDE),
    **dict.fromkeys(("linalg.eig", "linalg.eigvals"), _COMPLEX),
    "fx": "mt.jit(f).graph(...) gives a function's graph, which mt.Graph, mt.passes and mt.inspect work on",
    "hub": "there is no network in it; mt.load reads files of weights",
    "multiprocessing": "Python's own multiprocessing passes arrays; a DataLoader takes num_workers",
    "onnx": "mt.export.onnx.save(function, path, *arguments) writes ONNX",
    "utils.tensorboard": _WORDS,
    "utils.cpp_extension": "kernels are schedules of loops here: see docs/schedules.md",
}


def reason_for(name: str) -> str:
    """Return why minitorch has no such name of PyTorch's, written without `torch.`; empty if there is no reason.

    Example:
        >>> reason_for("fft.rfft")
        'complex numbers are left out: elements are bools, integers or floats'
    """
    parts = name.split(".")
    found = (REASONS.get(".".join(parts[:count])) for count in range(len(parts), 0, -1))
    return next(filter(None, found), "")
