"""Wrong calls are refused in words: each row is a call, its error, and words of the message that say what was wrong."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from fuzz import api
from fuzz.modes import MODES
from minitorch.errors import DTypeError, TracedValueError
from tests.core.misuse import LEFT_OUT, Misuse, contains, first_line, misuses

F = mt.nn.functional

x, y = mt.ones(2, 3), mt.tensor([0, 1])
w = mt.ones(2, requires_grad=True)
nn, SGD, Adam, AdamW, schedules, utils = (
    mt.nn,
    mt.optim.SGD,
    mt.optim.Adam,
    mt.optim.AdamW,
    mt.optim.lr_scheduler,
    mt.nn.utils,
)

# The call, its error, and words of the message.
TRAINING = [
    ("SGD([w], lr=-0.1)", ValueError, "SGD: lr cannot be negative: -0.1"),
    ("SGD([w], lr='a')", TypeError, "SGD: lr is a number, not str: 'a'"),
    ("SGD([w], momentum=-0.1)", ValueError, "SGD: momentum cannot be negative"),
    ("SGD([w], momentum='a', nesterov=True)", TypeError, "SGD: momentum is a number"),
    ("SGD([w], dampening='a')", TypeError, "SGD: dampening is a number"),
    ("SGD([w], weight_decay=-0.1)", ValueError, "SGD: weight_decay cannot be negative"),
    ("Adam([w], lr=-0.1)", ValueError, "Adam: lr cannot be negative"),
    ("Adam([w], lr=math.nan)", ValueError, "Adam: lr cannot be negative: nan"),
    ("AdamW([w], eps=-0.1)", ValueError, "AdamW: eps cannot be negative"),
    ("AdamW([w], weight_decay=-0.1)", ValueError, "AdamW: weight_decay cannot be negative"),
    ("Adam([w], betas=(0.9, 1.0))", ValueError, "betas are from 0 up to, not including, 1"),
    ("Adam([w], betas=0.9)", TypeError, "betas are two numbers"),
    ("Adam([w], betas=('a', 0.9))", TypeError, "each of betas is a number, not str"),
    ("Adam([w], foreach=True, fused=None, capturable=True, differentiable=True)", ValueError, "is not differentiable"),
    ("Adam([w], beta=0.9)", TypeError, "Adam has no option 'beta'"),
    ("mt.optim.Adadelta([w], rho=1.5)", ValueError, "Adadelta: rho is a share, from 0 to 1, not 1.5"),
    ("mt.optim.Adagrad([w], lr_decay=-1)", ValueError, "Adagrad: lr_decay cannot be negative"),
    ("Adam([w]).load_state_dict({})", TypeError, 'a dict with "param_groups" and "state"'),
    ("Adam([w]).load_state_dict(5)", TypeError, "what state_dict() gave"),
    ("schedules.StepLR(3, 1)", TypeError, "StepLR takes an optimizer first, not int"),
    ("schedules.LambdaLR(3, abs)", TypeError, "LambdaLR takes an optimizer first, not int"),
    ("schedules.StepLR(SGD([w]), 0)", ValueError, "at least 1, not 0"),
    ("schedules.StepLR(SGD([w]), 1.5)", TypeError, "StepLR: step_size is an int, not float"),
    ("schedules.StepLR(SGD([w]), 1, 'a')", TypeError, "StepLR: gamma is a number, not str"),
    ("schedules.StepLR(SGD([w]), 1, last_epoch=3)", KeyError, "StepLR: with last_epoch=3 each group needs"),
    ("schedules.StepLR(SGD([w]), 1, last_epoch=-2)", ValueError, "StepLR: last_epoch cannot be negative: -2"),
    ("schedules.StepLR(SGD([w]), 1, last_epoch='a')", TypeError, "StepLR: last_epoch is an int, not str"),
    ("schedules.CosineAnnealingLR(SGD([w]), 0)", ValueError, "T_max is a number of epochs, more than 0, not 0"),
    ("schedules.CosineAnnealingLR(SGD([w]), 'a')", TypeError, "CosineAnnealingLR: T_max is a number, not str"),
    ("schedules.CosineAnnealingLR(SGD([w]), 3, 'a')", TypeError, "CosineAnnealingLR: eta_min is a number"),
    ("schedules.LambdaLR(SGD([w]), 3)", TypeError, "lr_lambda is a function, or a list of them, not int"),
    ("schedules.LambdaLR(SGD([w]), [])", ValueError, "one function for each group of parameters: 1, not 0"),
    ("schedules.LambdaLR(SGD([w]), lambda epoch: None)", TypeError, "lr_lambda returns is a number, not NoneType"),
    ("mt.nn.Linear(2, 3).load_state_dict(5)", TypeError, "a dict of tensors by name, not int"),
    ("mt.nn.Linear(2, 3).load_state_dict({'bias': [1]})", TypeError, "'bias' is a tensor or an array, not list"),
    ("utils.clip_grad_norm_([w], 'a')", TypeError, "clip_grad_norm_: max_norm is a number, not str"),
    ("utils.clip_grad_norm_([w], 1.0, 'a')", TypeError, "clip_grad_norm_: norm_type is a number"),
    ("utils.clip_grad_value_([w], 'a')", TypeError, "clip_grad_value_: clip_value is a number"),
]
# Refused when they are made, as in PyTorch or earlier.
MODULES = [
    ("nn.Dropout(2.0)", ValueError, "Dropout: p is a probability, from 0 to 1, not 2.0"),
    ("nn.Dropout(math.nan)", ValueError, "Dropout: p is a probability, from 0 to 1, not nan"),
    ("nn.Dropout('a')", TypeError, "Dropout: p is a number, not str"),
    ("nn.Hardtanh(2, 1)", ValueError, "Hardtanh: min_val=2 is above max_val=1"),
    ("nn.CrossEntropyLoss(weight=[1.0, 2.0])", TypeError, "CrossEntropyLoss: weight is a tensor, not list"),
    ("nn.BCEWithLogitsLoss(pos_weight=[1.0])", TypeError, "BCEWithLogitsLoss: pos_weight is a tensor"),
    ("nn.Linear(3, -4)", ValueError, "Linear: out_features cannot be negative: -4"),
    ("nn.Linear(2.0, 4)", TypeError, "Linear: in_features is an int, not float"),
    ("nn.Conv2d(-3, 4, 3)", ValueError, "Conv2d: in_channels cannot be negative: -3"),
    ("nn.Conv2d(3, 4, 3, groups=0)", ValueError, "Conv2d: 3 and 4 channels do not divide into 0 groups"),
    ("nn.Conv2d(3, 4, 3, groups=-1)", ValueError, "Conv2d: 3 and 4 channels do not divide into -1 groups"),
    ("nn.Conv2d(3, 4, 3, groups=2)", ValueError, "Conv2d: 3 and 4 channels do not divide into 2 groups"),
    ("nn.Conv2d(3, 4, 3.0)", TypeError, "kernel_size is made of ints, not 3.0"),
    ("nn.Conv2d(3, 4, 'ab')", TypeError, "kernel_size is made of ints, not 'ab'"),
    ("nn.Conv2d(3, 4, 3, padding='foo')", ValueError, 'Conv2d: padding is "same", "valid" or a number'),
    ("nn.Conv1d(3, 4, 3, padding='same', stride=2)", ValueError, 'Conv1d: padding="same" needs a stride of 1'),
    ("nn.Embedding(-3, 4)", ValueError, "Embedding: num_embeddings cannot be negative: -3"),
    ("nn.Embedding(3, 4, padding_idx=7)", ValueError, "Embedding: padding_idx=7 is not a row of 3"),
    ("nn.BatchNorm1d(-3)", ValueError, "BatchNorm1d: num_features cannot be negative: -3"),
    ("nn.LayerNorm(-3)", ValueError, "LayerNorm: a length cannot be negative: -3"),
    ("nn.RMSNorm(2.5)", TypeError, "RMSNorm: a length is an int, not float"),
    ("nn.GroupNorm(2, 3)", ValueError, "GroupNorm: 3 channels do not divide into 2 groups"),
    ("nn.GroupNorm(0, 3)", ValueError, "GroupNorm: 3 channels do not divide into 0 groups"),
    ("nn.Sequential(3)", TypeError, "Sequential holds modules, and 0 is of type int"),
    ("nn.Sequential().append(abs)", TypeError, "Sequential holds modules, and 0 is of type builtin_function"),
    ("nn.ModuleList(3)", TypeError, "ModuleList takes a list of modules, not int"),
    ("nn.ModuleDict({'a': 3})", TypeError, "ModuleDict holds modules, and a is of type int"),
    ("nn.init.normal_(mt.ones(2), 0.0, -1.0)", ValueError, "normal_: the standard deviation cannot be negative"),
    ("nn.init.uniform_(mt.ones(2), 2.0, 1.0)", ValueError, "from 2.0 up to 1.0 there is no number"),
]
FUNCTIONS = [
    ("mt.arange(math.nan)", ValueError, "arange: the bounds and the step have to be finite"),
    ("mt.arange(math.inf)", ValueError, "arange: the bounds and the step have to be finite"),
    ("mt.arange('a')", TypeError, "arange: each bound is a number, not str: 'a'"),
    ("mt.zeros(10**10, 10**10)", ValueError, "more elements than an address has bytes"),
    ("mt.rand(0, 10**10, 10**10)", ValueError, "rand: [0, 10000000000, 10000000000] are more elements"),
    ("mt.linspace(0, 1, 2.5)", TypeError, "linspace: the number of steps is an int, not float: 2.5"),
    ("mt.logspace(0, 1, 'a')", TypeError, "logspace: steps is an int, not str: 'a'"),
    ("mt.linspace(0, 1, -1)", ValueError, "the number of steps cannot be negative: -1"),
    ("mt.repeat_interleave(x, -1)", ValueError, "the number of repeats cannot be negative: -1"),
    ("mt.repeat_interleave(x, 1.5)", TypeError, "the number of repeats is an int, not float"),
    ("mt.cat(x)", TypeError, "cat takes a list or tuple of tensors, not Tensor"),
    ("mt.cat([1, 2])", TypeError, "cat joins tensors, and 1 is of type int"),
    ("mt.stack(x)", TypeError, "stack takes a list or tuple of tensors"),
    ("mt.hstack(x)", TypeError, "hstack takes a list or tuple of tensors"),
    ("mt.vstack(x)", TypeError, "vstack takes a list or tuple of tensors"),
    ("mt.pad(x, 'a')", TypeError, "pad: the amounts are ints"),
    ("F.pad(x, (1, 1.5))", TypeError, "pad: the amounts are ints"),
    ("mt.pad(x, (1, 1), value='a')", TypeError, "pad: the value is a number, not str"),
    ("mt.var(x, correction='a')", TypeError, "var: the correction is a number, not str"),
    ("mt.std_mean(x, correction='a')", TypeError, "std_mean: correction is a number, not str: 'a'"),
    ("mt.ones(3).fill_(mt.ones(3))", ValueError, "fill_: the value is f32[3], not one number"),
    ("mt.ones(3).fill_([1.0])", TypeError, "not list"),
    ("mt.bucketize(x, mt.ones(2, 2))", ValueError, "the boundaries are f32[2,2], not of one dimension"),
    ("mt.manual_seed('a')", TypeError, "manual_seed: the seed is a number, not str: 'a'"),
    ("mt.normal(0.0, -1.0, (2,))", ValueError, "the standard deviation cannot be negative: -1.0"),
    ("mt.ones(2).normal_(0.0, -1.0)", ValueError, "normal_: the standard deviation cannot be negative"),
    ("mt.ones(2).uniform_(1.0, 0.0)", ValueError, "uniform_: from 1.0 up to 0.0 there is no number"),
    ("mt.bernoulli(2.0)", TypeError, "bernoulli: input is a tensor, not float"),
    ("mt.bernoulli(x, 2.0)", ValueError, "bernoulli: p is a probability, from 0 to 1, not 2.0"),
    ("mt.ones(2).bernoulli_('a')", TypeError, "bernoulli_: p is a number, not str"),
    ("F.dropout(x, 'a')", TypeError, "dropout: p is a number, not str"),
    ("F.dropout(x, 2.0)", ValueError, "dropout: p is a probability"),
    (
        "F.cross_entropy(x, y, weight=mt.ones(2))",
        ValueError,
        "the weight is f32[2], and the input f32[2,3] has 3",
    ),
    ("F.nll_loss(x, y, weight=mt.ones(4))", ValueError, "nll_loss: the weight is f32[4]"),
    ("F.cross_entropy(x, mt.ones(2, 3), weight=mt.ones(1))", ValueError, "cross_entropy: the weight is f32[1]"),
    ("mt.bucketize(x, [1.0])", TypeError, "not list"),
    ("mt.stack([x, mt.ones(2)])", ValueError, "stack: f32[2,3] and f32[2] have different shapes"),
    ("x.masked_fill(x, 0)", TypeError, "masked_fill: the mask is f32[2,3], not bool"),
    ("x.pow('a')", TypeError, "pow: exponent is a tensor or a number, not str: 'a'"),
    ("mt.tensor([1, 300], dtype=mt.uint8)", ValueError, "300 does not fit uint8: its numbers go from 0 to 255"),
    ("mt.tensor([-129, 1], dtype=mt.int8)", ValueError, "-129 does not fit int8: its numbers go from -128 to 127"),
    ("mt.grad(x)", TypeError, "a function is differentiated, not Tensor: write grad(f)(x)"),
    ("mt.hessian(x)", TypeError, "a function is differentiated, not Tensor"),
    ("mt.debug.print(x)", TypeError, "debug.print: the first argument is a text"),
]


@pytest.mark.parametrize(("call", "error", "words"), FUNCTIONS)
@pytest.mark.parametrize("mode", [lambda function: function, mt.jit], ids=["eager", "traced"])
def test_wrong_call_is_refused_in_every_mode(call: str, error: type[Exception], words: str, mode: Any) -> None:
    with pytest.raises(error) as refused:
        mode(lambda: eval(call))()
    assert words in str(refused.value)


@pytest.mark.parametrize("name", F.__all__)
@pytest.mark.parametrize(("wrong", "kind"), [(list, "list"), (lambda: np.ones(2), "ndarray"), (float, "float")])
@pytest.mark.parametrize("mode", [lambda function: function, mt.jit], ids=["eager", "traced"])
def test_functions_of_networks_take_tensors_alone(name: str, wrong: Any, kind: str, mode: Any) -> None:
    function = getattr(F, name)
    parameters = inspect.signature(function).parameters
    given: dict[str, Any] = {each.name: 1 for each in parameters.values() if each.default is each.empty}
    tensors = [each.name for each in parameters.values() if each.annotation in ("Tensor", "Tensor | None")]
    given |= dict.fromkeys(tensors, x)
    for argument in tensors:
        with pytest.raises(TypeError, match=f"{function.__name__}: {argument} is a tensor, not {kind}"):
            mode(lambda argument=argument: function(**given | {argument: wrong()}))()
    with pytest.raises(TypeError, match=f"{tensors[0]} is a tensor, not {kind}"):
        mode(lambda: function(wrong(), *[*given.values()][1:]))()


# What only values show: a graph checks them whenever it runs. Of each, the call, arguments, the error and words of it.
VALUES: list[tuple[str, list[Any], type[Exception], str]] = [
    ("F.binary_cross_entropy(a, b)", [[0.5, 1.5], [0.0, 1.0]], ValueError, "binary_cross_entropy: the input has 1.5"),
    (
        "F.binary_cross_entropy(a, b)",
        [[0.5, 1.0], [0.0, -2.5]],
        ValueError,
        "binary_cross_entropy: the target has -2.5",
    ),
    ("F.binary_cross_entropy(a, b)", [[0.5, math.nan], [0.0, 1.0]], ValueError, "the input has nan"),
    ("nn.BCELoss()(a, b)", [[0.5, 1.5], [0.0, 1.0]], ValueError, "binary_cross_entropy: the input has 1.5"),
    ("mt.grad(F.binary_cross_entropy)(a, b)", [[0.5, 1.5], [0.0, 1.0]], ValueError, "the input has 1.5"),
    (
        "mt.bernoulli(a)",
        [[0.5, 2.0]],
        ValueError,
        "bernoulli: the input has 2.0, and every element has to be from 0 to 1",
    ),
    ("a.bernoulli()", [[0.5, -0.1]], ValueError, "bernoulli: the input has -0.1"),
    ("mt.normal(a, b)", [[0.0, 0.0], [-1.0, 1.0]], ValueError, "has -1.0, and every element has to be at least 0"),
    ("F.one_hot(a, 3)", [[0, -1]], ValueError, "one_hot: the input has -1, and every element has to be from 0 to 2"),
    ("F.one_hot(a, 3)", [[0, 3]], ValueError, "one_hot: the input has 3"),
    ("F.one_hot(a, 0)", [[0, 3]], ValueError, "one_hot: the input is i64[2], and no element is from 0 to -1"),
    ("F.embedding(a, w)", [[0, 2]], IndexError, "embedding: the input has 2, and every element has to be from 0 to 1"),
    ("F.embedding(a, w)", [[0, -1]], IndexError, "embedding: the input has -1"),
    ("F.cross_entropy(w, a)", [[0, -1]], IndexError, "cross_entropy: the target has -1"),
    ("F.cross_entropy(w, a, reduction='none')[0]", [[3, 1]], IndexError, "cross_entropy: the target has 3"),
    ("F.cross_entropy(w, a, ignore_index=-1)", [[-1, 5]], IndexError, "cross_entropy: the target has 5"),
    ("mt.grad(F.cross_entropy)(w, a)", [[0, 4]], IndexError, "cross_entropy: the target has 4"),
    ("F.nll_loss(w, a)", [[0, 3]], IndexError, "nll_loss: the target has 3"),
    ("w.gather(1, a)", [[[0], [-1]]], IndexError, "gather: the index has -1, and every element has to be from 0 to 2"),
    ("w.scatter(1, a, 1.0)", [[[0], [-1]]], IndexError, "scatter: the index has -1"),
    ("w.scatter_(1, a, 1.0)", [[[0], [3]]], IndexError, "scatter_: the index has 3"),
    ("mt.zeros(2, 3).scatter_add(1, a, w[:, :1])", [[[0], [5]]], IndexError, "scatter_add: the index has 5"),
    ("w.index_select(1, a)", [[0, -1]], IndexError, "index_select: the index has -1"),
    ("w.index_add(0, a, w)", [[0, -1]], IndexError, "index_add: the index has -1"),
    ("w.index_copy(0, a, w)", [[0, -2]], IndexError, "index_copy: the index has -2"),
    ("w.index_fill(0, a, 5)", [[0, -3]], IndexError, "index_fill: the index has -3"),
    ("w.take(a)", [[0, -7]], IndexError, "take: the index has -7, and every element has to be from -6 to 5"),
    ("mt.take_along_dim(w, a)", [[0, -1]], IndexError, "take_along_dim: the index has -1"),
    ("w[a]", [[0, 2]], IndexError, "index 2 is out of bounds for dim 0 of f32[2,3]"),
]
WAYS = [MODES[name] for name in ("eager", "interpret", "passes", "loops", "jit", "lazy", "session", "xla")]


@pytest.mark.parametrize(("call", "values", "error", "words"), VALUES, ids=[f"{call}-{at}" for call, at, *_ in VALUES])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_values_out_of_range_are_refused_in_every_mode(
    call: str, values: list[Any], error: type[Exception], words: str, way: Any
) -> None:
    def run(*given: mt.Tensor) -> Any:
        return eval(call, globals(), {**dict(zip("ab", given, strict=False)), "w": given[-1]})

    given = [*map(mt.tensor, values), mt.arange(6.0).reshape(2, 3)]
    with pytest.raises(error) as refused:
        way(run)(*given)
    assert words in str(refused.value)


# A sample in `make test`; with ``--sweep``, all of them.
@pytest.mark.parametrize(
    "row", [row for row in api.functions() if row.base not in LEFT_OUT], ids=lambda row: row.callee
)
def test_a_misuse_is_refused_alike_in_every_mode_by_name(row: api.Function, sweep: bool) -> None:
    calls = list(misuses(row))
    random = np.random.default_rng(len(calls))
    for case in calls if sweep else random.permutation(np.array(calls, dtype=object))[:SAMPLE]:
        refused = attempt(case, MODES["eager"])
        if refused is not None:
            assert isinstance(refused, (TypeError, ValueError, IndexError, RuntimeError)), case
            assert case.name in first_line(refused), f"{case}: {first_line(refused)}"
            is_named = isinstance(refused, DTypeError) or contains(str(refused), case.number)
            assert is_named, f"{case}: {first_line(refused)}"
        for name in ("interpret", "passes", "jit", "session", "xla") if sweep else ("interpret",):
            other = attempt(case, MODES[name])
            if isinstance(other, TracedValueError):  # a shape that depends on data
                continue
            assert type(other) is type(refused), f"{case} on {name}: {other!r}, and in eager mode {refused!r}"
            if refused is not None:  # an index between brackets has no name, wherever it is found to be out of range
                assert first_line(other) in (first_line(refused), first_line(refused).split(": ", 1)[-1]), case


SAMPLE = 6


def attempt(case: Misuse, way: Any) -> Exception | None:
    """What a call raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            way(case.call)(*case.tensors())
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(("call", "error", "words"), TRAINING + MODULES)
def test_wrong_call_of_training_is_refused(call: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as refused:
        eval(call)
    assert words in str(refused.value)


def test_learning_rate_may_be_a_tensor_also_in_a_trace() -> None:
    parameter = mt.ones(2, requires_grad=True)
    optimizer = SGD([parameter], lr=mt.tensor(0.5))

    @mt.jit
    def step(rate: mt.Tensor) -> None:
        optimizer.param_groups[0]["lr"] = rate
        optimizer.minimize(parameter.sum())

    step(mt.tensor(0.25))
    assert parameter.tolist() == [0.75, 0.75]
    assert math.isclose(optimizer.param_groups[0]["lr"], 0.25)
