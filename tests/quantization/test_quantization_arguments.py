"""What users hand to `mt.quantization`: what PyTorch's users write works, and what cannot be meant is refused."""

import copy
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import QuantizationError

q: Any = mt.quantization
X = np.random.default_rng(0).standard_normal((16, 7)).astype(np.float32)


class Derived(nn.Linear):
    """A linear layer that may do more."""


def net() -> Any:
    mt.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 3)).eval()


def quantized(model: Any, **options: Any) -> Any:
    return q.convert(q.calibrate(q.prepare(model, **options), [mt.tensor(X)]))


def test_a_string_names_one_module():
    model = nn.Sequential(*[nn.Linear(3, 3) for _ in range(12)])
    prepared: Any = q.prepare(model, leave_in_float="11")
    assert [type(each).__name__ for each in prepared][1::10] == ["Prepared", "Linear"]


def test_the_innermost_qconfig_counts():
    inner, coarse = net(), q.QConfig(q.MinMaxObserver, q.default_qconfig.weight)
    inner.qconfig, inner[0].qconfig = None, coarse
    prepared: Any = q.prepare(nn.Sequential(nn.Linear(7, 7), inner))
    assert type(prepared[0].activation) is q.HistogramObserver
    assert type(prepared[1][0].activation) is q.MinMaxObserver
    assert type(prepared[1][2]) is nn.Linear


def test_hooks_go_on():
    model, seen = net(), []
    model[0].register_forward_hook(lambda *_: seen.append("after"))
    model[0].register_forward_pre_hook(lambda *_: seen.append("before"))
    for made in (
        quantized(model),
        q.quantize_dynamic(model),
        q.quantize_weights_(copy.deepcopy(model)),
    ):
        seen.clear()
        made(mt.tensor(X))
        assert seen == ["before", "after"]


def test_batches_may_be_arrays_and_one_tensor_is_one_batch():
    made = [
        q.convert(q.calibrate(q.prepare(net()), data))(mt.tensor(X)).numpy()
        for data in ([mt.tensor(X)], [X], mt.tensor(X), X, [(X, "label")], iter([[X]]))
    ]
    assert all(np.array_equal(each, made[0]) for each in made)
    labels = mt.tensor(X[:, 0] > 0).to(mt.int64)
    found = [q.report(net(), data).rows for data in ([(mt.tensor(X),)], mt.tensor(X), [X])]
    assert found[0] == found[1] == found[2]
    assert q.report(net(), [(X, labels.numpy())]).accuracy == q.report(net(), [(X, labels)]).accuracy


def test_names_of_pytorch():
    assert q.get_default_qconfig("onednn") is q.default_qconfig
    assert q.get_default_qat_qconfig("qnnpack") is q.default_qat_qconfig
    observers = [q.get_default_qconfig().activation(), q.get_default_qat_qconfig("fbgemm").activation().observer]
    assert [(each.quant_min, each.quant_max) for each in observers] == [(0, 127)] * 2
    with pytest.raises(QuantizationError, match="no engine 'tpu'"):
        q.get_default_qconfig("tpu")
    model: Any = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU()).eval()
    for names in (["0", "1"], ["0", "1", "2"], [["0", "1", "2"]], [("0", "1")]):
        assert type(q.fuse_modules(model, names)[1]) is nn.Identity
    assert type(q.quantize_dynamic(net(), nn.Linear)[0]) is q.DynamicQuantized


def report_of(labels: Any) -> Any:
    return lambda: q.report(net(), [(mt.tensor(X), labels)])


prepared = q.prepare(net())
REFUSED: dict[str, tuple[Any, str]] = {
    "prepared twice": (lambda: q.prepare(prepared), "Sequential is prepared already: 0 has an observer"),
    "dynamic of prepared": (lambda: q.quantize_dynamic(prepared), "is prepared already"),
    "weights of prepared": (lambda: q.quantize_weights_(prepared), "is prepared already"),
    "frozen": (lambda: q.prepare(mt.freeze(net(), mt.tensor(X))), "Frozen is no module"),
    "not prepared": (lambda: q.convert(net()), "Sequential has no prepared layer to convert"),
    "converted twice": (lambda: q.convert(quantized(net())), "Sequential has no prepared layer to convert"),
    "no layer": (lambda: q.quantize_weights_(nn.ReLU()), "ReLU has no layer to quantise"),
    "weights twice": (lambda: q.quantize_weights_(quantized(net())), "Sequential has no layer to quantise"),
    "derived": (lambda: q.prepare(nn.Sequential(Derived(2, 2))), "and not Derived (0), which may do more"),
    "example as qconfig": (lambda: q.prepare(net(), mt.tensor(X)), "qconfig is of type Tensor, and no QConfig"),
    "observer in qconfig": (lambda: q.QConfig(q.MinMaxObserver(), q.MinMaxObserver), "QConfig: activation is Min"),
    "dictionary": (lambda: q.calibrate(prepared, [{"x": X}]), "a batch that begins with dict"),
    "dictionary as data": (lambda: q.calibrate(prepared, {"x": X}), "data of type dict"),
    "number as data": (lambda: q.calibrate(prepared, 3), "data of type int"),
    "names as kinds": (lambda: q.quantize_dynamic(net(), {"0"}), "'0' is no class of layers that can be quantised"),
    "another kind": (lambda: q.quantize_weights_(net(), kinds=(nn.ReLU,)), "ReLU is no class of layers"),
    "too high a label": (report_of(mt.full((16,), 7)), "report: the label 7, and 3 classes"),
    "negative label": (report_of(mt.full((16,), -1)), "report: the label -1, and 3 classes"),
    "float labels": (report_of(mt.rand(16)), "report: labels of type float32, shape [16]"),
    "one-hot labels": (report_of(mt.zeros(16, 3, dtype=mt.int64)), "shape [16, 3], and scores of shape [16, 3]"),
    "too few labels": (report_of(mt.zeros(15, dtype=mt.int64)), "shape [15], and scores of shape [16, 3]"),
    "no pair": (lambda: q.fuse_modules(net(), [["0"]]), "'0' cannot be folded"),
}


@pytest.mark.parametrize("label", REFUSED)
def test_what_cannot_be_meant_is_refused(label):
    mistake, text = REFUSED[label]
    with pytest.raises(QuantizationError) as caught:
        mistake()
    assert text in str(caught.value)
