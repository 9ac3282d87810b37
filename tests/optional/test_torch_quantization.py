"""What PyTorch's observers and fake quantisation give: the record that `tests/test_quantization.py` reads is true.

``python -m tests.optional.test_torch_quantization`` writes the record again, with the installed PyTorch.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.quantized import OBSERVERS, ROUNDED, SCHEMES, batches

RECORD = Path(__file__).parents[1] / "recorded" / "quantization.json"


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
    return {"torch": torch.__version__.partition("+")[0], "observers": observers, "fakes": fakes}


def test_the_record_is_pytorchs():
    torch = pytest.importorskip("torch")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if record["torch"] != torch.__version__.partition("+")[0]:
        pytest.skip(f"recorded with torch {record['torch']}")
    assert record == json.loads(json.dumps(recorded()))


if __name__ == "__main__":
    np.seterr(all="raise")
    RECORD.write_text(json.dumps(recorded(), separators=(",", ":")) + "\n", encoding="utf-8")
