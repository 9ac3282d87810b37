"""What PyTorch's observers and fake quantisation give: the record that `test_quantization.py` reads is true.

``python -m tests.quantization.pytorch.test_torch_quantization`` writes the record again, with the installed PyTorch.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.quantization.pytorch.quantized import OBSERVERS, ROUNDED, SCHEMES, batches, linear_inputs, network, pictures

RECORD = Path(__file__).parents[2] / "recorded" / "quantization.json"


def recorded():
    """The record, made here."""
    import torch
    from torch.ao import quantization as q

    types = {"uint8": torch.quint8, "int8": torch.qint8}
    warnings.simplefilter("ignore")

    def observed(name, options, data):
        given = {**options, "dtype": types[options["dtype"]], "qscheme": getattr(torch, options["qscheme"])}
        observer = getattr(q, name)(**given)
        for batch in data:
            observer(torch.from_numpy(batch))
        return observer.calculate_qparams()

    def integers(data, scale, zero_point, options):
        dtype = types[options["dtype"]]
        last = torch.from_numpy(data[-1])
        if scale.numel() > 1:
            return torch.quantize_per_channel(last, scale, zero_point, 0, dtype).int_repr()
        return torch.quantize_per_tensor(last, scale.item(), int(zero_point.item()), dtype).int_repr()

    observers = {}
    for label, (name, options, data) in OBSERVERS.items():
        scale, zero_point = observed(name, options, batches(data))
        full = "reduce_range" not in options
        observers[label] = {
            "scale": [float(each) for each in scale],
            "zero_point": zero_point.tolist(),
            "integers": integers(batches(data), scale, zero_point, options).tolist() if full else None,
        }
    fakes = {}
    for label, (x, scale, zero_point, low, high, axis) in ROUNDED.items():
        given = torch.tensor(x, requires_grad=True)
        if axis is None:
            y = torch.fake_quantize_per_tensor_affine(given, scale, zero_point, low, high)
        else:
            pair = torch.tensor(scale), torch.tensor(zero_point, dtype=torch.int32)
            y = torch.fake_quantize_per_channel_affine(given, *pair, axis, low, high)
        (y * torch.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
        fakes[label] = {"value": y.tolist(), "gradient": given.grad.tolist()}
    assert set(SCHEMES) <= set(dir(torch))
    version = torch.__version__.partition("+")[0]
    return {"torch": version, "observers": observers, "fakes": fakes, "network": converted(), "dynamic": dynamic()}


def converted():
    """Static quantisation of a small CNN: what each layer became, and the integers that come out.

    With `reduce_range`, so that no engine of PyTorch saturates.
    """
    import torch
    from torch.ao import quantization as q

    nn = torch.nn
    layers = [nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 8, 3, stride=2, padding=1)]
    model = nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(128, 10)).eval()
    state = {name: torch.from_numpy(value) for name, value in network().items()}
    model.load_state_dict(state, strict=False)
    folded = nn.utils.fusion.fuse_conv_bn_eval(model[0], model[1])
    fused = q.fuse_modules(model, [["0", "1", "2"], ["3", "4"]])
    whole = nn.Sequential(q.QuantStub(), fused, q.DeQuantStub())
    channels = {"dtype": torch.qint8, "qscheme": torch.per_channel_symmetric}
    whole.qconfig = q.QConfig(
        q.MinMaxObserver.with_args(reduce_range=True), q.PerChannelMinMaxObserver.with_args(**channels)
    )
    prepared = q.prepare(whole)
    for batch in pictures():
        prepared(torch.from_numpy(batch))
    made = q.convert(prepared)
    found = {}
    scale, zero_point = made[0].scale, made[0].zero_point
    for name in ("0", "3", "6"):
        layer = made[1][int(name)]
        found[name] = {
            "scale": float(scale),
            "zero_point": int(zero_point),
            "weight_scale": layer.weight().q_per_channel_scales().tolist(),
            "weight": layer.weight().int_repr().tolist(),
        }
        scale, zero_point = layer.scale, layer.zero_point
    out = made[0](torch.from_numpy(pictures()[0]))
    for name, layer in made[1].named_children():
        out = layer(out)
        if name in found:  # after its ReLU, where there is one
            found[name]["integers"] = out.int_repr().tolist()
    return {
        "folded": {"weight": folded.weight.tolist(), "bias": folded.bias.tolist()},
        "layers": found,
        "scale": float(scale),
        "zero_point": int(zero_point),
        "integers": out.int_repr().tolist(),
    }


def dynamic():
    """Dynamic quantisation of the linear layer: the weight, and by batch the scale, the integers and what comes out.

    By the engine qnnpack, which neither saturates nor leaves out a bit.
    """
    import torch
    from torch.ao import quantization as q

    torch.backends.quantized.engine = "qnnpack"
    layer = torch.nn.Sequential(torch.nn.Linear(128, 10))
    state = {"0.weight": network()["6.weight"], "0.bias": network()["6.bias"]}
    layer.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    made = q.quantize_dynamic(layer, {torch.nn.Linear: q.per_channel_dynamic_qconfig})
    weight = made[0].weight()
    found = []
    for rows in linear_inputs():
        x = torch.from_numpy(rows)
        scale, zero_point = torch._choose_qparams_per_tensor(x, False)
        integers = torch.quantize_per_tensor(x, scale, zero_point, torch.quint8).int_repr()
        result = made(x).tolist()
        found.append({"scale": scale, "zero_point": zero_point, "integers": integers.tolist(), "result": result})
    return {"scale": weight.q_per_channel_scales().tolist(), "weight": weight.int_repr().tolist(), "batches": found}


def test_the_record_is_pytorchs():
    torch = pytest.importorskip("torch")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if record["torch"] != torch.__version__.partition("+")[0]:
        pytest.skip(f"recorded with torch {record['torch']}")
    assert record == json.loads(json.dumps(recorded()))


if __name__ == "__main__":
    np.seterr(all="raise")
    RECORD.write_text(json.dumps(recorded(), separators=(",", ":")) + "\n", encoding="utf-8")
