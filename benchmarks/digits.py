"""Accuracy of a CNN on the handwritten digits: float32, bfloat16, int8 (after training, or trained for), int4 weights.

python -m benchmarks.digits            five seeds, the table
python -m benchmarks.digits --check    ends with 1 if int8 is more than half a point below float32
python -m benchmarks.digits --save     writes the table of docs/freezing.md

The CNN has three convolutions with batch normalization and ReLU, and a linear layer. It is trained in float32 on 1437
images; scales are calibrated on 256 of them, and accuracy is that on the other 360. Training for quantisation (QAT)
starts from the trained model, with a tenth of its learning rate. A point is one per cent: 3.6 of the 360 images.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import minitorch as mt
from minitorch import quantization as q

from .report import saved

PAGE = Path(__file__).resolve().parents[1] / "docs" / "freezing.md"
nn, F = mt.nn, mt.nn.functional
SEEDS = range(5)
EPOCHS, QAT_EPOCHS, BATCH = 12, 3, 48
AT_MOST_BELOW = 0.5  # points that int8 may be below float32, on the average over the seeds: what the project promises

Data = tuple[mt.Tensor, mt.Tensor]


def cnn() -> nn.Module:
    """Of images [batch, 1, 8, 8]."""
    layers: list[nn.Module] = []
    for one, two in ((1, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(one, two, 3, padding=1), nn.BatchNorm2d(two), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if two == 32 else []
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 4, 10))


def train(model: nn.Module, data: Data, epochs: int, rate: float) -> None:
    """Adam, with a compiled step; images that make no whole batch wait for the next order."""
    optimizer = mt.optim.Adam(model.parameters(), lr=rate)

    @mt.jit
    def step(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    images, labels = data
    for _ in range(epochs):
        order = mt.randperm(len(labels))
        for start in range(0, len(labels) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            step(images[batch], labels[batch])


def accuracy(model: Any, data: Data) -> float:
    """The percentage of images that are recognised."""
    with mt.no_grad():
        found = model(data[0]).argmax(1)
    return 100 * (found == data[1]).float().mean().item()


def in_bfloat16(model: nn.Module, data: Data) -> float:
    with mt.autocast("cpu", dtype=mt.bfloat16):
        return accuracy(model, data)


def measured(seed: int, epochs: int = EPOCHS, qat_epochs: int = QAT_EPOCHS) -> dict[str, float]:
    """The accuracy of every form of one trained CNN, in per cent."""
    (images, labels), (test_images, test_labels) = mt.data.load_digits()
    data, test = (images.reshape(-1, 1, 8, 8), labels), (test_images.reshape(-1, 1, 8, 8), test_labels)
    mt.manual_seed(seed)
    model = cnn()
    train(model, data, epochs, 2e-3)
    model.eval()
    prepared = q.calibrate(q.prepare(model, example=data[0][:8]), [data[0][:256]])
    in_training = q.prepare_qat(model, example=data[0][:8])
    train(in_training, data, qat_epochs, 2e-4)
    return {
        "float32": accuracy(model, test),
        "bfloat16": in_bfloat16(model, test),
        "int8": accuracy(mt.freeze(q.convert(prepared), test[0]), test),
        "int8, QAT": accuracy(mt.freeze(q.convert(in_training), test[0]), test),
        "int4 weights": accuracy(q.quantize_weights_(q.fuse(model, data[0][:8]), bits=4, group_size=32), test),
    }


HEAD = ("accuracy, %", "mean", "least", "most", "points less than float32")


def rows(runs: list[dict[str, float]]) -> list[tuple[str, ...]]:
    """Name, mean, spread and difference from float32 of each form, over the seeds."""
    found = []
    for name in runs[0]:
        every = [run[name] for run in runs]
        less = statistics.mean(run["float32"] - run[name] for run in runs)
        found.append((name, *(f"{value:.2f}" for value in (statistics.mean(every), min(every), max(every), less))))
    return found


def table(runs: list[dict[str, float]]) -> str:
    """The rows, in columns."""
    return "\n".join(f"{row[0]:<14}{row[1]:>7}{row[2]:>7}{row[3]:>7}{row[4]:>27}" for row in (HEAD, *rows(runs)))


def markdown(runs: list[dict[str, float]]) -> str:
    """The rows, for the page."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEAD, ("---",) * len(HEAD), *rows(runs)))


def main(arguments: list[str] | None = None, measure: Callable[[int], dict[str, float]] = measured) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digits", description="Accuracy of a quantised CNN.")
    parser.add_argument("--check", action="store_true", help="end with 1 if int8 loses more than half a point")
    parser.add_argument("--save", action="store_true", help=f"write the table of docs/{PAGE.name}")
    options = parser.parse_args(arguments)
    runs = [measure(seed) for seed in SEEDS]
    print(table(runs))
    if options.save:
        PAGE.write_text(saved(PAGE.read_text(encoding="utf-8"), markdown(runs)), encoding="utf-8")
    lost = {name: statistics.mean(run["float32"] - run[name] for run in runs) for name in ("int8", "int8, QAT")}
    return int(options.check and max(lost.values()) > AT_MOST_BELOW)


if __name__ == "__main__":
    sys.exit(main())
