"""The types of results are PyTorch's, recorded, for every public function and every pair of types of its arguments."""

import numpy as np
import pytest

import minitorch as mt
from tests.functional.types.typed import answer, numbered, rows_of
from tests.support.cases import CASES
from tests.support.records import read

RECORDED = read("types")
NUMBERED = dict(numbered(CASES))

# Functions that take types here which PyTorch refuses on a CPU; see "Where it differs" in the README.
WIDER = {
    *("ceil", "fix", "floor", "round", "trunc", "median", "argmax", "argmin", "topk", "trace"),  # of bools
    *("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "tensordot", "einsum"),
    *("addmm", "addmv", "baddbmm", "addbmm"),
    *("F.linear", "F.conv1d", "F.conv2d", "F.conv3d", "F.max_pool1d", "F.max_pool2d", "F.relu", "relu"),
    *("searchsorted", "bucketize", "randint_like"),
    *("hypot", "logaddexp", "lerp", "F.gelu", "F.hardsigmoid", "F.hardswish", "F.silu", "F.smooth_l1_loss", "F.kl_div"),
    *("F.binary_cross_entropy", "F.binary_cross_entropy_with_logits", "F.one_hot"),  # of integers
    *("isclose", "meshgrid", "cross", "F.batch_norm", "F.layer_norm", "F.group_norm", "F.huber_loss", "F.l1_loss"),
    *("F.interpolate", "F.conv_transpose1d", "F.conv_transpose2d", "F.prelu", "F.pad", "F.local_response_norm"),
    *(
        "F.gaussian_nll_loss",
        "F.hinge_embedding_loss",
        "F.multi_margin_loss",
        "F.multilabel_margin_loss",
    ),  # of integers
    *(
        "F.bilinear",
        "F.adaptive_max_pool1d",
        "F.adaptive_max_pool2d",
        "F.ctc_loss",
        "F.fold",
        "F.unfold",
        "F.embedding_bag",
    ),
    *("histogram", "linalg.norm"),  # of 16 bits, of integers
    *("cdist", "isin", "F.scaled_dot_product_attention", "F.instance_norm"),  # of two types
}
# Functions whose result has another type: that of both arguments, where PyTorch takes that of one.
OTHERWISE = {"F.huber_loss", "F.binary_cross_entropy_with_logits", "F.avg_pool1d", "F.avg_pool2d", "F.interpolate"}


@pytest.mark.parametrize("name", NUMBERED)
def test_types_of_results_are_pytorchs(name):
    case = NUMBERED[name]
    for first, rest, theirs in rows_of(RECORDED[name]):
        mt.manual_seed(0)
        ours = answer(mt, case, first, rest)
        if ours != theirs:
            assert case.name in (WIDER if theirs == "-" else OTHERWISE), (first, rest, ours, theirs)


def test_no_exception_is_listed_in_vain():
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for name, case in NUMBERED.items():
        if case.name in WIDER | OTHERWISE:
            for first, rest, theirs in rows_of(RECORDED[name]):
                if answer(mt, case, first, rest) != theirs:
                    found[theirs == "-"].add(case.name)
    assert found == {True: WIDER, False: OTHERWISE}


NAMES = [(float, "float64"), ("float", "float64"), (int, "int64"), ("int", "int64"), (bool, "bool"), ("bool", "bool")]
NAMES += [
    (np.float32, "float32"),
    (np.dtype("f4"), "float32"),
    ("float32", "float32"),
    ("half", "float16"),
    (np.int8, "int8"),
]


@pytest.mark.parametrize(("given", "name"), NAMES, ids=str)
def test_a_type_means_what_it_means_in_numpy(given, name):
    wanted, x = getattr(mt, name), mt.ones(2)
    made = [
        mt.zeros(2, dtype=given),
        mt.tensor([1], dtype=given),
        x.to(given),
        x.type(given),
        mt.full_like(x, 1, dtype=given),
    ]
    assert [each.dtype for each in made] == [wanted] * len(made)


@pytest.mark.parametrize("given", [complex, "complex64", np.complex128, str, "nothing", object, 5, np.str_], ids=str)
def test_what_is_no_type_is_refused_by_name(given):
    for name, call in (("zeros", mt.zeros), ("rand", mt.rand)):
        with pytest.raises(TypeError, match=f"{name}.* is not an element type of minitorch"):
            call(2, dtype=given)
