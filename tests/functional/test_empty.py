"""Tensors without elements, in every mode: PyTorch's shapes and values, or an error of ours, never one of NumPy's."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import MinitorchError
from minitorch.nn import functional as F

MODES: dict[str, Callable[..., Any]] = {
    "eager": lambda function: function,
    "interpret": lambda function: mt.jit(function, backend="interpret"),
    "loops": lambda function: mt.jit(function, backend="loops"),
    "llvm": mt.jit,
}
SHAPES = [(0,), (0, 4), (4, 0), (0, 4, 3), (2, 0, 4), (2, 4, 0)]


def outcome(function, *arguments):
    """The values of a result, or that it was refused."""
    try:
        result = function(*arguments)
    except (MinitorchError, IndexError, ValueError, RuntimeError) as error:
        assert "numpy" not in str(error) and "newaxis" not in str(error) and "ZeroDivision" not in repr(error)
        return "refused"
    return [(x.shape, repr(x.tolist())) for x in (result if isinstance(result, (tuple, list)) else [result])]


# Functions along a dimension; each is tried along every dimension of every shape, and of stepped and turned views.
ALONG = [
    *(mt.sum, mt.mean, mt.prod, mt.var, mt.std, mt.logsumexp, mt.norm, mt.cumsum, mt.cumprod, mt.sort, mt.argsort),
    *(mt.amax, mt.amin, mt.max, mt.min, mt.argmax, mt.median, mt.all, mt.any, mt.nansum, mt.nanmean, mt.count_nonzero),
    *(mt.unbind, F.softmax, F.log_softmax, F.normalize, mt.var_mean, mt.flip, mt.msort),
]


@pytest.mark.sweep
@pytest.mark.parametrize("mode", [name for name in MODES if name != "eager"])
@pytest.mark.parametrize("function", ALONG, ids=[function.__name__ for function in ALONG])
def test_what_goes_along_a_dimension_is_alike_in_every_mode(function, mode):
    for shape in SHAPES:
        for dim in range(len(shape)):
            for view in (lambda x: x, lambda x: x[..., ::2], lambda x: x.transpose(0, -1)):
                options = (
                    {}
                    if function is mt.msort
                    else {"dims" if function is mt.flip else "dim": (dim,) if function is mt.flip else dim}
                )

                def called(x, view=view, options=options):
                    return function(view(x), **options)

                x = mt.ones(shape)
                assert outcome(MODES[mode](called), x) == outcome(called, x), (shape, dim)


@pytest.mark.parametrize("mode", MODES)
def test_normalizations_of_nothing(mode):
    """PyTorch's shapes; an empty batch leaves the running statistics as they are."""
    functions = [
        (lambda x: x[:, :, ::2].var(dim=(2, 1)), (0, 31, 64), (0,)),
        (lambda x: F.group_norm(x, 2), (0, 4), (0, 4)),
        (lambda x: F.group_norm(x, 2), (2, 4, 0), (2, 4, 0)),
        (lambda x: F.layer_norm(x, (4,)), (0, 4), (0, 4)),
        (lambda x: F.layer_norm(x, (0,)), (3, 0), (3, 0)),
        (lambda x: F.rms_norm(x, (0,)), (3, 0), (3, 0)),
        (lambda x: F.batch_norm(x, None, None, training=True), (0, 4), (0, 4)),
        (lambda x: F.batch_norm(x, None, None, training=True), (3, 0), (3, 0)),
        (lambda x: F.batch_norm(x, mt.zeros(4), mt.ones(4)), (0, 4, 2, 2), (0, 4, 2, 2)),
    ]
    for function, given, expected in functions:
        assert MODES[mode](function)(mt.ones(given)).shape == expected
    mean, var, weight = mt.full((4,), 2.0), mt.full((4,), 3.0), mt.ones(4, requires_grad=True)

    def step(x, weight):
        y = F.batch_norm(x, mean, var, weight, mt.zeros(4), training=True)
        return mt.autograd.grad(y.sum(), weight)[0]

    assert MODES[mode](step)(mt.ones(0, 4, 2), weight).tolist() == [0] * 4
    assert (mean.tolist(), var.tolist()) == ([2.0] * 4, [3.0] * 4)
    assert math.isnan(MODES[mode](mt.median)(mt.ones(0, 3)).item())
    with pytest.raises(ValueError, match="one value per channel"):
        MODES[mode](lambda x: F.batch_norm(x, None, None, training=True))(mt.ones(1, 4))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 0), (1, 4)])
def test_padding_by_negative_amounts_cuts_off(shape, mode):
    """As NumPy's slices and pads; to cut off more than there is is refused, as by PyTorch."""
    x = mt.arange(math.prod(shape)).reshape(shape)
    amounts = range(-4, 3, 2 if mode == "loops" else 1)
    for pair, first in itertools.product(itertools.product(amounts, repeat=2), [(0, 0), (-1, 1)][: len(shape)]):
        pairs = [first, pair][-len(shape) :]
        given = [each for pair in pairs[::-1] for each in pair]
        kept = [length + min(a, 0) + min(b, 0) for length, (a, b) in zip(shape, pairs, strict=True)]
        found = outcome(MODES[mode](lambda x, given=given: F.pad(x, given, value=7)), x)
        if min(kept) < 0:
            assert found == "refused"
            continue
        cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(shape, pairs, strict=True))
        padded = np.pad(x.numpy()[cut], [(max(a, 0), max(b, 0)) for a, b in pairs], constant_values=7)
        assert found == [(padded.shape, repr(padded.tolist()))]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "target", [mt.zeros(2, 0, dtype=mt.int64), mt.zeros(2, 0, 0)], ids=["numbers", "probabilities"]
)
def test_smoothed_labels_of_no_classes_are_no_error(mode, target):
    loss = MODES[mode](lambda x: F.cross_entropy(x, target, label_smoothing=0.1))(mt.zeros(2, 0, 0))
    assert math.isnan(loss.item())
