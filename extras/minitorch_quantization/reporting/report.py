"""`report`: the cost of quantisation, layer by layer, and which layers to leave in float.

Each layer is looked at by itself: the float model runs on the data, and where it calls a layer, the quantised form of
that layer is given the same input. So a layer's noise is its own, without that of the layers before it. The
signal-to-noise ratio is 10 * log10(sum y**2 / sum (y' - y)**2) decibels; each bit more gives 6.

The accuracy with one layer left in float says what that layer costs the model. Without labels, it is the share of
samples for which the quantised model decides as the float model does.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd import no_grad
from minitorch.errors import QuantizationError
from minitorch.nn.module import Module
from minitorch.tables import Table, Tabular
from minitorch.tensor import Tensor

from ..arguments import batches_of, inputs_of, labels_of
from ..fusing import fuse
from ..modules.quantized import Quantized
from ..preparing import calibrate, convert, prepare
from ..qconfig import QConfig, default_qconfig
from ..replacing import layers_of, replaced

if TYPE_CHECKING:
    from minitorch_inspect.picture import Picture
    from minitorch_inspect.plots.plot import Plot

Array = np.ndarray[Any, Any]

BINS = 64  # of the histograms
# Decibels below which a layer is named as noisy: the noise is then a tenth of the signal. Raising it names more layers.
NOISY = 20.0
# The share of clipped numbers above which a layer is named for it.
CLIPPED = 0.01
# Percentage points that a layer has to give back, if it is left in float, to be recommended for it.
WORTH = 0.2


@dataclass(frozen=True)
class LayerReport:
    """A layer.

    Attributes:
        name, kind: of the layer in its model.
        low, high: the range of its input.
        clipped: the share of its input that is outside of the quantised range.
        decibels: the signal-to-noise ratio of its output, by its own noise alone.
        weight_decibels: that of its weight.
        accuracy: of the quantised model with this layer left in float, in per cent.
        scale, zero_point: of its input.
        counts: the histogram of its input, in `BINS` bins from `low` to `high`.
        grid: the lowest and the highest number that its quantised input stands for.
    """

    name: str
    kind: str
    low: float
    high: float
    clipped: float
    decibels: float
    weight_decibels: float
    accuracy: float
    scale: float
    zero_point: int
    counts: tuple[int, ...]
    grid: tuple[float, float]


@dataclass(frozen=True, repr=False)
class Report(Tabular):
    """The result of `report`; `print` shows the table and the recommendation.

    Attributes:
        model: the name of its class.
        rows: the layers, in the order of the model.
        accuracy: of the float model, in per cent; 100 without labels.
        quantized: of the quantised model.
        measure: ``"accuracy"``, or ``"agreement"`` without labels.
        leave_in_float: names of layers to leave in float, the most worthwhile first: for `prepare`.
        reasons: a sentence for each of them; or one that says why there is none.
        floats: the float model, and `example` its inputs, for the picture of the graph.
    """

    model: str
    rows: tuple[LayerReport, ...]
    accuracy: float
    quantized: float
    measure: str
    leave_in_float: tuple[str, ...]
    reasons: tuple[str, ...]
    floats: Module
    example: tuple[Tensor, ...]

    def histograms(self) -> Plot:
        """The numbers that each layer is given, and the grid that they are rounded to, as a picture."""
        from .pictures import histograms

        return histograms(self)

    def graph(self) -> Picture:
        """The layers as a graph, coloured by their signal-to-noise ratio."""
        from .pictures import graph

        return graph(self)

    def _parts(self) -> list[Table | str]:
        from .pictures import parts

        return parts(self)


def report(model: Module, data: Iterable[Any], qconfig: QConfig = default_qconfig) -> Report:
    """Measure what post-training quantisation costs a model, and recommend which layers to leave in float.

    Args:
        model: with `Linear`, `Conv1d` and `Conv2d` layers; its result is scores [batch, classes].
        data: batches of inputs, or pairs of inputs and labels (int64 [batch]); it is gone through several times.
        qconfig: the observers.

    Raises:
        QuantizationError: if there is no data, or it cannot be calibrated with, or labels are no classes (``MT701``).

    Example:
        >>> import minitorch as mt
        >>> _ = mt.manual_seed(0)
        >>> net = mt.nn.Sequential(mt.nn.Linear(8, 16), mt.nn.ReLU(), mt.nn.Linear(16, 3))
        >>> found = mt.quantization.report(net, [mt.randn(64, 8)])
        >>> [row.name for row in found.rows], found.leave_in_float
        (['0', '2'], ())
    """
    batches = list(batches_of(data))
    if not batches:
        raise QuantizationError("MT701", "report: there is no data", fix="give at least one batch of inputs")
    given = [inputs_of(model, batch) for batch in batches]
    floats = fuse(model, given[0])
    quantized = convert(calibrate(prepare(model, qconfig, given[0]), batches))
    with no_grad():
        scores = [floats(*each) for each in given]
        behind = [batch[len(inputs) :] for batch, inputs in zip(batches, given, strict=True)]
        labels = [labels_of(rest[0], each) if rest else None for rest, each in zip(behind, scores, strict=True)]
        decided = [_decisions(each) for each in scores]
        wanted = [mine if label is None else label for mine, label in zip(decided, labels, strict=True)]
        whole = _share(quantized, given, wanted)
        seen = _seen(floats, quantized, given)
        rows = tuple([_row(name, quantized, floats, given, wanted, *seen[name]) for name in seen])
    reached = 100 * float(np.mean(np.concatenate([a == b for a, b in zip(decided, wanted, strict=True)])))
    measure = "agreement" if labels[0] is None else "accuracy"
    names, reasons = _recommended(rows, reached, whole)
    return Report(type(model).__name__, rows, reached, whole, measure, names, reasons, floats, given[0])


def _decisions(scores: Tensor) -> Array:
    return scores.argmax(-1).numpy()


def _share(model: Module, batches: list[Any], wanted: list[Array]) -> float:
    """The percentage of samples that are decided as wanted."""
    hits = [_decisions(model(*batch)) == right for batch, right in zip(batches, wanted, strict=True)]
    return 100 * float(np.mean(np.concatenate(hits)))


def _seen(floats: Module, quantized: Module, batches: list[Any]) -> dict[str, tuple[list[Array], float, float]]:
    """For each quantised layer: the inputs of the float layer, and the sums of squares of its output and noise."""
    found: dict[str, tuple[list[Array], float, float]] = {}
    handles = []
    for name, layer in layers_of(quantized, [Quantized]):

        def look(_: Module, given: Any, result: Tensor, name: str = name, layer: Any = layer) -> None:
            inputs, signal, noise = found.get(name, ([], 0.0, 0.0))
            expected, own = result.numpy().astype(np.float64), layer(given[0]).numpy()
            signal, noise = signal + float((expected**2).sum()), noise + float(((own - expected) ** 2).sum())
            found[name] = [*inputs, given[0].numpy().reshape(-1)], signal, noise

        handles.append(floats.get_submodule(name).register_forward_hook(look))
    for batch in batches:
        floats(*batch)
    for handle in handles:
        handle.remove()
    return found


def decibels(signal: float, noise: float) -> float:
    """The signal-to-noise ratio of two sums of squares; infinite without noise.

    Example:
        >>> decibels(1.0, 0.01), decibels(1.0, 0.0)
        (20.0, inf)
    """
    return 10 * math.log10(signal / noise) if noise and signal else math.inf if not noise else -math.inf


def _row(
    name: str, quantized: Module, floats: Module, batches: list[Any], wanted: list[Array], inputs: Any, *sums: float
) -> LayerReport:
    layer: Any = quantized.get_submodule(name)
    original: Any = floats.get_submodule(name)
    values = np.concatenate(inputs)
    scale, zero = layer.scale.item(), layer.zero_point.item()
    low, high = ((each - zero) * scale for each in layer.range)
    clipped = float(np.mean((values < low - scale / 2) | (values > high + scale / 2)))
    weight = original.weight.detach().numpy().astype(np.float64)
    stored = layer.dequantized_weight().numpy()
    mixed = replaced(copy.deepcopy(quantized), {name: copy.deepcopy(original)})
    counts, _ = np.histogram(values, BINS, (float(values.min()), max(float(values.max()), float(values.min()) + 1e-30)))
    return LayerReport(
        name,
        layer.kind,
        float(values.min()),
        float(values.max()),
        clipped,
        decibels(*sums),
        decibels(float((weight**2).sum()), float(((stored - weight) ** 2).sum())),
        _share(mixed, batches, wanted),
        scale,
        zero,
        tuple(counts.tolist()),
        (low, high),
    )


def _recommended(
    rows: tuple[LayerReport, ...], reached: float, whole: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The layers that are worth a float, and why."""
    gains = sorted(((row.accuracy - whole, row) for row in rows), key=lambda pair: -pair[0])
    worth = [(gain, row) for gain, row in gains if gain >= WORTH and whole < reached]
    if not worth:
        lost = f"quantisation costs {max(reached - whole, 0):.2f} points"
        return (), (f"none: {lost}, and no layer left in float gives back {WORTH:g} or more",)
    return tuple([row.name for _, row in worth]), tuple([_reason(gain, row) for gain, row in worth])


def _reason(gain: float, row: LayerReport) -> str:
    because = []
    if row.clipped > CLIPPED:
        because.append(f"{row.clipped:.1%} of its input is clipped to {row.grid[0]:.3g} to {row.grid[1]:.3g}")
    if row.weight_decibels < NOISY:
        because.append(f"its weight has {row.weight_decibels:.0f} dB")
    if row.decibels < NOISY or not because:
        because.append(f"its output has {row.decibels:.0f} dB, with an input from {row.low:.3g} to {row.high:.3g}")
    return f"{row.name} ({row.kind}) gives back {gain:.2f} points: {'; '.join(because)}"
