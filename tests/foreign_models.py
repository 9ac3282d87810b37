"""Models that others export: how the files of `tests/recorded/onnx` are made, with PyTorch, scikit-learn and skl2onnx.

    python -m tests.foreign_models

writes them again. Each has the name of its maker first; beside `NAME.onnx` lies `NAME.npz` with inputs and results of
the model itself, not of a runtime. The network of notebook 14 is a record of the course: see `digits`.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitorch_course.libraries.records import FOLDER as RECORDS
from tests.recorded_functions import write as write_record

FOLDER = Path(__file__).parent / "recorded" / "onnx"
Arrays = dict[str, np.ndarray[Any, Any]]
Made = tuple[bytes, Arrays, list[np.ndarray[Any, Any]]]
"""A model's bytes, its inputs by name, its results in order."""


def networks() -> Iterator[tuple[str, Any, Arrays]]:
    """PyTorch's modules, with inputs."""
    import torch
    from torch import nn

    class Words(nn.Module):  # type: ignore[misc]
        """An LSTM in two layers and both directions."""

        def __init__(self) -> None:
            super().__init__()
            self.table, self.lstm = nn.Embedding(20, 6), nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
            self.last = nn.Linear(10, 3)

        def forward(self, words: Any) -> Any:
            return self.last(self.lstm(self.table(words))[0])

    class Gates(nn.Module):  # type: ignore[misc]
        """A GRU that gives its last state, too."""

        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(4, 5)

        def forward(self, x: Any) -> Any:
            return self.gru(x)

    torch.manual_seed(0)
    cnn = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(6, 10),
    )  # fmt: skip
    cnn(torch.randn(32, 1, 8, 8))  # so that the statistics are not 0 and 1
    layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(16), enable_nested_tensor=False)
    for each in encoder.parameters():  # otherwise the layers are alike, and written once
        if each.ndim > 1:
            nn.init.xavier_uniform_(each)
    random = np.random.default_rng(17)

    def real(*shape: int) -> np.ndarray[Any, Any]:
        return random.standard_normal(shape).astype(np.float32)

    yield "cnn", cnn, {"x": real(2, 1, 8, 8)}
    yield "lstm", Words(), {"words": random.integers(0, 20, (2, 4))}
    yield "gru", Gates(), {"x": real(3, 2, 4)}
    yield "encoder", encoder, {"src": real(2, 5, 16)}


def of_torch(module: Any, inputs: Arrays, dynamo: bool) -> Made:
    """What one of PyTorch's two exporters makes of a module, with a batch of any size."""
    import torch

    module.eval()
    given = tuple([torch.from_numpy(each) for each in inputs.values()])
    names, file = list(inputs), io.BytesIO()
    batch = 1 if names == ["x"] and given[0].ndim == 3 else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"dynamic_axes": {names[0]: {batch: "batch"}}, "opset_version": 17}
        if dynamo:
            options = {"dynamic_shapes": ({batch: torch.export.Dim("batch")},), "opset_version": 20}
        found = torch.onnx.export(
            module, given, None if dynamo else file, input_names=names, dynamo=dynamo, verbose=False, **options
        )
    content = found.model_proto.SerializeToString() if found is not None else file.getvalue()
    content = without_comments(content)
    with torch.no_grad():
        result = module(*given)
    results = result if isinstance(result, tuple) else (result,)
    return content, inputs, [each.numpy() for each in results]


def without_comments(content: bytes) -> bytes:
    """A model without the lines of the exporter's source that it was made by, and their paths."""
    import onnx

    model = onnx.ModelProto.FromString(content)
    for each in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        each.ClearField("doc_string")
        each.ClearField("metadata_props")
    for each in (model, model.graph, *model.graph.initializer):
        each.ClearField("metadata_props")
    found: bytes = model.SerializeToString()
    return found


def of_sklearn() -> Made:
    """A perceptron on the digits, with its classes and their probabilities."""
    from skl2onnx import to_onnx
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((24, 16), max_iter=20, random_state=0).fit(x[:500], y[:500])
    content = to_onnx(model, x[:1], options={"zipmap": False}, target_opset=17).SerializeToString()
    x = x[500:520]
    return content, {"X": x}, [model.predict(x), model.predict_proba(x).astype(np.float32)]


def digits() -> dict[str, Any]:
    """The record of the course: a small CNN that PyTorch has trained on the digits, and exported."""
    import torch
    from torch import nn

    from minitorch.data import load_digits
    from minitorch_course.conditions import settings, version_of

    (images, labels), (test, _) = ([torch.from_numpy(each.numpy()) for each in pair] for pair in load_digits())
    torch.manual_seed(0)
    cnn = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(cnn.parameters(), lr=0.01)
    for _ in range(20):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(cnn(images[batch].reshape(-1, 1, 8, 8)), labels[batch]).backward()
            optimizer.step()
    content, _, _ = of_torch(cnn, {"x": test[:2].reshape(-1, 1, 8, 8).numpy()}, True)
    versions = ", ".join(f"{package} {version_of(package)}" for package in ("torch", "onnxscript"))
    where = f"{versions}, {settings(threads=None, fresh=False).machine}"
    return {"command": "python -m tests.foreign_models", "where": where, "model": base64.b64encode(content).decode()}


def makers() -> dict[str, Callable[[], Made]]:
    """How each model is made, by its name."""
    found: dict[str, Callable[[], Made]] = {"sklearn_mlp": of_sklearn}
    for name, module, inputs in networks():
        found[f"torch_{name}"] = partial(of_torch, module, inputs, False)
        found[f"torch_{name}_dynamo"] = partial(of_torch, module, inputs, True)
    return found


def read(name: str) -> tuple[Path, Arrays, list[np.ndarray[Any, Any]]]:
    """A recorded model's file, its inputs by name, and its results."""
    with np.load(FOLDER / f"{name}.npz") as found:
        inputs = {each[3:]: found[each] for each in found.files if each.startswith("in.")}
        results = [found[f"out.{place}"] for place in range(len(found.files) - len(inputs))]
    return FOLDER / f"{name}.onnx", inputs, results


def write(name: str, made: Made) -> None:
    """Record a model."""
    content, inputs, results = made
    (FOLDER / f"{name}.onnx").write_bytes(content)
    arrays: dict[str, Any] = {f"in.{key}": value for key, value in inputs.items()}
    arrays |= {f"out.{place}": each for place, each in enumerate(results)}
    np.savez_compressed(FOLDER / f"{name}.npz", **arrays)


def main() -> None:
    """Write all records."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in makers().items():
        write(name, make())
    write_record(digits(), RECORDS / "torch-digits.json")


if __name__ == "__main__":
    main()
