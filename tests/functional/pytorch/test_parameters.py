"""Public functions and methods can be called with PyTorch's names for their parameters, recorded."""

import functools
import inspect

import pytest

import minitorch as mt
from minitorch.functional.arguments import renamed
from tests.support.records import read

RECORDED = read("parameters")

# What no function has: sparse tensors, deprecated forms.
NOWHERE = {"out_dtype", "sparse_grad", "_stacklevel", "out_int32", "sorter", "enable_gqa"}
# What no module has, and what no optimizer has.
NOWHERE |= {"_weight", "_freeze", "differentiable", "maximize"}
# What single functions lack.
MISSING = {
    "F.embedding": {"scale_grad_by_freq", "sparse"},
    "nn.Embedding": {"scale_grad_by_freq", "sparse"},
    "nn.Hardtanh": {"min_value", "max_value"},
    "F.embedding_bag": {"scale_grad_by_freq", "sparse"},
    "nn.EmbeddingBag": {"scale_grad_by_freq", "sparse"},
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
    where, _, last = name.rpartition(".")
    return getattr(
        functools.reduce(getattr, {"F": "nn.functional"}.get(where, where).split("."), mt) if where else mt, last
    )


def refused(name, form):
    """The names that a function does not take."""
    signature = inspect.signature(ours(name))
    given = [each for each in form if each not in NOWHERE and (each in signature.parameters or each != "out")]
    given = list(renamed(dict.fromkeys(given), signature.parameters))
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
