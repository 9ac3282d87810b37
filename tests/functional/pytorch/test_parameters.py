"""Public functions and methods can be called with PyTorch's names for their parameters, recorded."""

import inspect

import pytest

import minitorch as mt
from minitorch.functional.arguments import OTHER_NAMES
from tests.support.records import read

RECORDED = read("parameters")

# What no function has: memory formats, sparse and named tensors, deprecated forms.
NOWHERE = {
    *("out", "out_dtype", "layout", "memory_format", "pin_memory", "sparse_grad", "size_average", "reduce"),
    *("_stacklevel", "inplace", "out_int32", "sorter", "enable_gqa"),
}
# What single functions lack.
MISSING = {
    "F.avg_pool2d": {"divisor_override"},
    "F.embedding": {"max_norm", "norm_type", "scale_grad_by_freq", "sparse"},
    "F.huber_loss": {"weight"},
    "F.l1_loss": {"weight"},
    "F.mse_loss": {"weight"},
    "Tensor.backward": {"inputs"},
    "Tensor.expand": {"implicit"},
    "Tensor.to": {"other"},
    "Tensor.view": {"dtype", "size"},
    "from_dlpack": {"copy", "device", "ext_tensor"},
    "tensor_split": {"tensor_indices_or_sections"},
    "Tensor.tensor_split": {"tensor_indices_or_sections"},
}
# Forms that are not here, or whose parameters can be given by position alone.
FORMS = {
    "isin": [
        [*names, "assume_unique", "invert"] for names in (["element", "test_elements"], ["elements", "test_element"])
    ],
    "result_type": [["tensor", "other"], ["scalar", "tensor"], ["tensor", "other"], ["scalar1", "scalar2"]],
    "sort": [["input", "reverse"]],
    "Tensor.sort": [["reverse"]],
}


def ours(name):
    if name.startswith("Tensor."):
        return getattr(mt.Tensor, name.removeprefix("Tensor."))
    return getattr(mt.nn.functional, name[2:]) if name.startswith("F.") else getattr(mt, name)


def refused(name, form):
    """The names that a function does not take."""
    signature = inspect.signature(ours(name))
    given = [each for each in form if each not in NOWHERE]
    given = [new if (new := OTHER_NAMES.get(each, "")) in signature.parameters else each for each in given]
    try:
        signature.bind_partial(*[None] * name.startswith("Tensor."), **dict.fromkeys(given))
    except TypeError:
        return {each for each in given if each not in signature.parameters}
    return set()


@pytest.mark.parametrize("name", RECORDED)
def test_pytorchs_names_of_parameters_are_taken(name):
    forms = [form for form in RECORDED[name] if form not in FORMS.get(name, [])]
    assert set().union(*[refused(name, form) for form in forms]) == MISSING.get(name, set())


def test_sizes_and_dimensions_may_be_given_by_name():
    x = mt.arange(6).reshape(shape=(2, 3))
    calls = [
        (mt.flip(x, dims=(0, 1)), x.flip(0, 1)),
        (x.flip(dims=[0]), x.flip(0)),
        (mt.permute(x, dims=(1, 0)), x.T),
        (mt.tile(x, dims=(2, 1)), x.tile(2, 1)),
        (x.repeat(repeats=(2, 1)), x.repeat(2, 1)),
        (x[:, :1].expand(size=(2, 3)), x[:, :1].expand(2, 3)),
        (mt.zeros(size=(2, 3)), mt.zeros(2, 3)),
        (x.new_ones(size=(2, 2)), x.new_ones(2, 2)),
        (mt.mm(x, mat2=x.T), x @ x.T),
        (mt.arange(end=3), mt.arange(3)),
        (mt.randint(high=1, size=(2,)), mt.zeros(2, dtype=mt.int64)),
        (mt.scatter(x, 1, x[:, :1] * 0, value=7), x.scatter(1, x[:, :1] * 0, 7)),
    ]
    for mine, same in calls:
        assert mt.equal(mine, same)
    for function in (mt.rand, mt.randn):
        assert function(size=(2, 3)).shape == (2, 3)
