"""Each layer of ResNet-50 and of MobileNetV2 by itself, batch 1, one core: int8 beside float32, both frozen.

python -m benchmarks.layers                          the table
python -m benchmarks.layers --cases "resnet.* 7"     those whose name matches
python -m benchmarks.layers --check                  ends with 1 if int8 is slower in a layer, or a schedule is refused
MINITORCH_TARGET=avx2 python -m benchmarks.layers    for fewer instructions

A layer is a convolution or a linear layer with its ReLU. In int8 it reads and writes bytes, as between two layers of a
quantised network. "alone" is the same layer of floats, whose input is quantised first, as that of a network's first
layer is. Without VNNI, activations have 7 bits, as PyTorch's default has them there.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import minitorch as mt
from minitorch import nn
from minitorch import quantization as q
from minitorch.compiler.codegen.host import host

from .turns import medians

SECONDS = 0.3  # for each layer
COLOURS = 3  # channels of a network's input
NOISE = 1.05  # times as long as float32: two measurements of one layer differ by as much on a busy machine

# Channels in the middle and at the end of a block, how many blocks, and the side of its images.
RESNET = ((64, 256, 3, 56), (128, 512, 4, 28), (256, 1024, 6, 14), (512, 2048, 3, 7))
# Expansion, channels, blocks, and the stride of the first of them (Sandler et al., 2018, table 2).
MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


@dataclass(frozen=True)
class Layer:
    """A convolution of square images, or a linear layer, whose images have one element.

    Attributes:
        side: of the images that come in.
        channels, filters: that come in, and that go out.
        size, stride: of the filters.
        groups: of the channels; as many as there are channels if it is depthwise.
    """

    side: int
    channels: int
    filters: int
    size: int = 1
    stride: int = 1
    groups: int = 1

    @property
    def module(self) -> nn.Module:
        """The layer, in float32."""
        if self.side == 1:
            return nn.Sequential(nn.Linear(self.channels, self.filters)).eval()
        at = self.size // 2
        layer = nn.Conv2d(self.channels, self.filters, self.size, self.stride, at, groups=self.groups)
        return nn.Sequential(layer, nn.ReLU()).eval()

    @property
    def input(self) -> mt.Tensor:
        """Normal numbers."""
        return mt.randn(1, self.channels, *((self.side, self.side) if self.side > 1 else ()))

    def __str__(self) -> str:
        kind = "linear" if self.side == 1 else f"{self.size}×{self.size}"
        kind += " depthwise" if self.groups > 1 else ""
        kind += f" / {self.stride}" if self.stride > 1 else ""
        return f"{self.channels} to {self.filters}, {kind}, {self.side}"


def resnet50() -> Iterator[Layer]:
    """Its convolutions and its linear layer (He et al., 2015; strides are those of the 3×3, as in torchvision)."""
    yield Layer(224, COLOURS, 64, 7, 2)
    channels, side = 64, 56
    for middle, last, blocks, after in RESNET:
        for block in range(blocks):
            stride = side // after
            yield Layer(side, channels, middle)
            yield Layer(side, middle, middle, 3, stride)
            yield Layer(after, middle, last)
            if block == 0:
                yield Layer(side, channels, last, 1, stride)
            channels, side = last, after
    yield Layer(1, channels, 1000)


def mobilenet_v2() -> Iterator[Layer]:
    """Its convolutions and its linear layer."""
    yield Layer(224, COLOURS, 32, 3, 2)
    channels, side = 32, 112
    for expansion, filters, blocks, first in MOBILENET:
        for block in range(blocks):
            stride, wide = first if block == 0 else 1, expansion * channels
            if expansion > 1:
                yield Layer(side, channels, wide)
            yield Layer(side, wide, wide, 3, stride, wide)
            side //= stride
            yield Layer(side, wide, filters)
            channels = filters
    yield Layer(side, channels, 1280)
    yield Layer(1, 1280, 1000)


NETWORKS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2}
CASES = {f"{name} {layer}": layer for name, layers in NETWORKS.items() for layer in layers()}


def measured(layer: Layer, seconds: float) -> tuple[dict[str, float], list[str]]:
    """The seconds of a call in each form, and why schedules were refused."""
    x, module = layer.input, layer.module
    has_vnni = host().avx512_vnni or host().avx_vnni
    prepared = q.prepare(module, q.get_default_qconfig("onednn" if has_vnni else "x86"), x)
    alone: Any = q.convert(q.calibrate(prepared, [x]))
    given, largest = alone[0].quantized(x), alone(x).detach().relu().max()
    made = q.QParams(largest / 255, mt.tensor(0, dtype=mt.int32), mt.uint8, 0, 255)
    between = lambda p: q.quantize(alone(q.dequantize(p, given)).relu(), made)  # noqa: E731
    forms = {"float32": (module, x), "int8": (between, q.quantize(x, given)), "alone": (alone, x)}
    calls = {name: (mt.freeze(form, value), value) for name, (form, value) in forms.items()}
    refused = [why for call, value in calls.values() for each in call.ledger(value).kernels for why in each.refused]
    return medians({name: partial(call, value) for name, (call, value) in calls.items()}, seconds), refused


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", metavar="REGEX", default="", help="only those whose name matches")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each layer")
    parser.add_argument("--check", action="store_true", help="end with 1 if int8 is slower or a schedule is refused")
    options = parser.parse_args()
    mt.set_num_threads(1)
    good = True
    print(f"{'layer':<48}{'float32':>12}{'int8':>12}{'ratio':>8}{'alone':>8}  refused")
    for name, layer in CASES.items():
        if re.search(options.cases, name):
            times, refused = measured(layer, options.seconds)
            whole, small, alone = times.values()
            if layer.channels == COLOURS:
                small = alone
            is_good = small <= NOISE * whole and not refused
            good = good and is_good
            print(
                f"{name:<48}{whole * 1e6:>9.1f} us{small * 1e6:>9.1f} us{whole / small:>8.2f}{whole / alone:>8.2f}  "
                f"{'; '.join(refused)}{'' if is_good else '<-'}",
                flush=True,
            )
    return 0 if good or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
