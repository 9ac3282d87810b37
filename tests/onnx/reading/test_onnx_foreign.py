"""Models that PyTorch and skl2onnx have exported: loaded, run in every mode, trained, quantised, exported again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import quantization as q
from minitorch.errors import QuantizationError
from minitorch_onnx.reading.loading import module_of
from tests import foreign_models
from tests.onnx.exported import checked, run

NAMES = sorted(path.stem for path in foreign_models.FOLDER.glob("*.onnx"))
by_name = pytest.mark.parametrize("name", NAMES)


def loaded(name: str) -> tuple[Any, list[mt.Tensor], list[np.ndarray[Any, Any]]]:
    """A recorded model in evaluation, its arguments, and its results."""
    path, inputs, results = foreign_models.read(name)
    model = mt.export.load_onnx(path).eval()
    return model, [mt.tensor(inputs[each]) for each in model.input_names], results


def close(found: Any, wanted: list[np.ndarray[Any, Any]], atol: float = 2e-6) -> None:
    """Results are those recorded."""
    results = found if isinstance(found, tuple) else (found,)
    assert [each.shape for each in results] == [each.shape for each in wanted]
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-5, atol=atol)


def test_all_kinds_are_recorded() -> None:
    kinds = [f"torch_{kind}{way}" for kind in ("cnn", "encoder", "gru", "lstm") for way in ("", "_dynamo")]
    assert ["sklearn_mlp", *kinds] == NAMES


@by_name
def test_it_gives_the_results_of_its_maker_in_every_mode(name: str) -> None:
    model, inputs, wanted = loaded(name)
    close(model(*inputs), wanted)
    function = mt.jit(model)
    close(function(*inputs), wanted)
    assert "return" in str(function.graph(*inputs)) and "kernel" in str(function.ledger(*inputs))
    close(mt.freeze(model, *inputs)(*inputs), wanted)
    with mt.lazy():
        late = model(*inputs)
    close(late, wanted)
    with mt.Graph() as graph:
        given = [mt.placeholder(x.shape, x.dtype, name=f"x{at}") for at, x in enumerate(inputs)]
        results = model(*given)
    fetched = mt.Session(graph).run(results, dict(zip(given, inputs, strict=True)))
    close(fetched, wanted)


@by_name
def test_it_takes_batches_of_another_size(name: str) -> None:
    model, inputs, wanted = loaded(name)
    batch = 1 if "gru" in name else 0
    several = [mt.cat([x, x, x], batch) for x in inputs]
    thrice = [np.concatenate([each] * 3, batch if each.ndim > 2 else 0) for each in wanted]
    close(model(*several), thrice)
    close(mt.jit(model)(*several), thrice)


@by_name
def test_it_is_exported_again(name: str) -> None:
    model, inputs, wanted = loaded(name)
    exported = checked(mt.export.onnx(model, *inputs, opset_version=18))
    feeds = {each.name: x.numpy() for each, x in zip(exported.graph.input, inputs, strict=True)}
    for found, other in zip(run(exported, feeds), wanted, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-5, atol=2e-6)


@by_name
def test_it_is_trained(name: str) -> None:
    model, inputs, _ = loaded(name)
    optimizer = mt.optim.SGD(model.train().parameters(), lr=0.01)

    def loss() -> Any:
        found = model(*inputs)
        return (found[-1] if isinstance(found, tuple) else found).square().mean()

    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        now = loss()
        now.backward()
        optimizer.step()
        losses.append(now.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


@pytest.mark.parametrize("name", ["torch_cnn", "torch_cnn_dynamo", "torch_encoder_dynamo", "sklearn_mlp"])
def test_it_is_quantised(name: str) -> None:
    model, inputs, wanted = loaded(name)
    with pytest.raises(QuantizationError, match=r"model\.with_layers\(\)"):
        q.prepare(model)
    layered = model.with_layers()
    close(layered(*inputs), wanted)
    quantised = q.convert(q.calibrate(q.prepare(layered, example=tuple(inputs)), [(each,) for each in inputs]))
    weights = [each for each in quantised.state_dict().values() if each.dtype is mt.int8]
    assert len(weights) >= 3
    found = quantised(*inputs)
    last = found[-1] if isinstance(found, tuple) else found
    assert 0 < abs(last.detach().numpy() - wanted[-1]).max() < 0.1
    close(mt.freeze(quantised, *inputs)(*inputs), [each.detach().numpy() for each in mt.tree.flatten(found)[0]], 1e-2)


def test_an_exported_network_is_quantised_as_the_network_itself() -> None:
    _ = mt.manual_seed(0)
    convolution = mt.nn.Conv2d(3, 4, 3, padding=1, bias=False), mt.nn.BatchNorm2d(4), mt.nn.ReLU()
    model = mt.nn.Sequential(*convolution, mt.nn.Flatten(), mt.nn.Linear(64, 5)).eval()
    x = mt.randn(2, 3, 4, 4)
    layered = module_of(mt.export.onnx(model, x)).eval().with_layers()
    assert [type(each).__name__ for each in layered.children()] == ["Conv2d", "BatchNorm2d", "Linear"]
    results = [q.convert(q.calibrate(q.prepare(each, example=x), [x]))(x) for each in (model, layered)]
    np.testing.assert_allclose(results[0].detach().numpy(), results[1].detach().numpy(), rtol=1e-5, atol=1e-6)
