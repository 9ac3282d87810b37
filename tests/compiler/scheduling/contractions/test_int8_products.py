"""Products of 8-bit integers with 32-bit sums: NumPy's 64-bit integers modulo 2**32 are the reference, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.compiler.codegen.host import executable_targets, host
from minitorch.compiler.codegen.listing import inner_loops
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.loop_ir.source import compiled
from minitorch.compiler.target import TARGETS, Target, with_features
from minitorch.dtypes import DType

Array = np.ndarray[Any, Any]
BYTES = (dtypes.uint8, dtypes.int8)
PAIRS = [(left, right) for left in BYTES for right in BYTES]


def numbers(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> Array:
    """Random numbers, half of them at the ends of the range, where sums of pairs do not fit into 16 bits."""
    random = np.random.default_rng(seed)
    ends = np.iinfo(dtype.numpy)
    drawn = random.integers(ends.min, ends.max, shape, endpoint=True)
    return np.where(random.random(shape) < 0.5, random.choice([ends.min, ends.max], shape), drawn).astype(dtype.numpy)


def held(number: int, dtype: DType) -> int:
    """An integer as the type holds it."""
    bits = 8 * dtype.itemsize
    rest = int(number) % 2**bits
    return rest - 2**bits * (dtype.is_signed and rest >= 2 ** (bits - 1))


def product(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
    return P.dot(a, b, dtype=dtypes.int32)


def expected(a: Array, b: Array) -> Array:
    return np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(np.int32)


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("backend", ["eager", "interpret", "llvm"])
def test_a_product_is_that_of_integers(left: DType, right: DType, backend: str) -> None:
    function: Any = product if backend == "eager" else mt.jit(product, backend=backend)
    for m, k, n in ((1, 1, 1), (3, 7, 5), (6, 258, 33), (5, 300, 17), (2, 515, 9)):
        a, b = numbers((m, k), left, m), numbers((k, n), right, n)
        found = function(mt.tensor(a), mt.tensor(b))
        assert found.dtype is dtypes.int32
        assert np.array_equal(found.numpy(), expected(a, b)), (m, k, n)


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_a_sum_wraps_around(backend: str) -> None:
    """33026 products of 255 * 255 are more than 2**31."""
    a, b = mt.full((1, 33026), 255, dtype=mt.uint8), mt.full((33026, 2), 255, dtype=mt.uint8)
    function: Any = product if backend == "eager" else mt.jit(product)
    assert function(a, b).tolist() == [[33026 * 255 * 255 - 2**32] * 2]


@pytest.mark.parametrize("dtype", [each for each in dtypes.ALL if each.category == "int"])
def test_eager_products_of_all_integers_are_exact(dtype: DType) -> None:
    """Where no float is sure to be exact, NumPy's own integer loops are."""
    ends = np.iinfo(dtype.numpy)
    a = np.full((2, 300), ends.max, dtype.numpy)
    a[0, 1::2] = ends.min
    found = P.dot(mt.tensor(a), mt.tensor(a.T.copy()), dtype=dtype).numpy()
    exact = np.matmul(a.astype(object), a.T.astype(object))
    assert [[each.item() for each in row] for row in found] == [[held(each, dtype) for each in row] for row in exact]


def test_a_mixed_product_is_text_and_back() -> None:
    text = "graph f(a: u8[2,3,4], b: i8[2,4,5]):\n  %0 = dot(a, b, dtype=i32) : i32[2,3,5]\n  return %0"
    graph = mt.Graph.parse(text)
    assert mt.Graph.parse(str(graph)).nodes[-1].dtype is dtypes.int32 and "dot(a, b, dtype=i32) : i32[2,3,5]" in str(
        graph
    )


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.float32])
def test_mixed_types_have_sums_in_int32(dtype: DType) -> None:
    with pytest.raises(mt.errors.DTypeError, match=f"take the sums in int32, not {dtype.name}"):
        mt.jit(lambda a, b: P.dot(a, b, dtype=dtype))(mt.ones(2, 2, dtype=mt.uint8), mt.ones(2, 2, dtype=mt.int8))


def test_other_mixtures_are_refused() -> None:
    with pytest.raises(mt.errors.DTypeError, match="convert one of them first"):
        mt.jit(product)(mt.ones(2, 2, dtype=mt.int16), mt.ones(2, 2, dtype=mt.int8))


# --- kernels ----------------------------------------------------------------------------------------------------------


def with_vnni(name: str, feature: str) -> Target:
    """A predefined target with one more feature."""
    base = TARGETS[name]
    features = {**dict.fromkeys(base.required, True), feature: True}
    return with_features(f"{name} with {feature}", base.triple, base.cpu, features, base.caches, base.cores)


VNNI = {"avx512": with_vnni("avx512", "avx512vnni"), "avx2": with_vnni("avx2", "avxvnni")}


def here() -> dict[str, str | Target]:
    """The targets whose code this machine runs."""
    own = TARGETS | {"native": host()}
    found: dict[str, str | Target] = {name: own[name] for name in executable_targets()}
    found |= {f"{name}, VNNI": each for name, each in VNNI.items() if each.required <= host().required}
    return found


def kernel_of(function: Any, arrays: list[Array], target: str | Target) -> Kernel:
    (kernel,) = mt.jit(function).ledger(*map(mt.tensor, arrays)).for_target(target).kernels
    return kernel


def run(kernel: Kernel, arrays: list[Array]) -> Array:
    """The kernel's machine code, given each array that it reads, which is known by its type and shape."""
    given = []
    for node in kernel.reads:
        if node.primitive.name != "constant":
            given.append(next(each for each in arrays if (each.shape, each.dtype) == (node.shape, node.dtype.numpy)))
            arrays = [each for each in arrays if each is not given[-1]]
    return np.asarray(kernel.steps[-1](*given).numpy())


def drawn_shape(random: np.random.Generator) -> tuple[int, int, int]:
    """m, k, n: mostly small and odd; now and then k is in several blocks, or there are many tiles."""
    kind = random.integers(8)
    most = (20, 70, 80) if kind < 6 else (90, 300, 300) if kind == 6 else (9, 5000, 100)
    m, k, n = (int(random.integers(1, each + 1)) for each in most)
    return m, k, n


TURNED: dict[tuple[bool, bool], Any] = {
    (False, False): product,
    (True, False): lambda a, b: product(a.T, b),
    (False, True): lambda a, b: product(a, b.T),
    (True, True): lambda a, b: product(a.T, b.T),
}


@pytest.mark.parametrize("target", here())
def test_kernels_are_exact(target: str) -> None:
    """All pairs of types, operands as they lie and transposed, k from 1 to thousands, and no schedule is refused."""
    random = np.random.default_rng(sorted(here()).index(target))
    for turn in range(12):
        (left, right), (m, k, n) = PAIRS[turn % 4], drawn_shape(random)
        flips = [bool(each) for each in random.random(2) < 0.4]
        a, b = numbers((k, m) if flips[0] else (m, k), left, turn), numbers((n, k) if flips[1] else (k, n), right, turn)

        function = TURNED[flips[0], flips[1]]
        kernel = kernel_of(function, [a, b], here()[target])
        assert "a schedule is refused" not in repr(kernel.schedule), (m, k, n, left, right, flips, kernel.schedule)
        wanted = expected(a.T if flips[0] else a, b.T if flips[1] else b)
        assert np.array_equal(run(kernel, [a, b]), wanted), (m, k, n, left, right, flips)


def convolution(x: mt.Tensor, weight: mt.Tensor, padding: int, zero: int) -> mt.Tensor:
    """A convolution with sums in int32 of an image padded with some number, as quantised layers have it."""
    around = (0, 0, 0), (0, 0, 0), (padding, padding, 0), (padding, padding, 0)
    filters, depth, height, width = weight.shape
    x = P.pad(x, padding=around, value=zero)
    for dim, size in ((2, height), (3, width)):
        x = P.unfold(x, dim=dim, size=size, step=1, dilation=1)
    batch, _, *places = x.shape[:4]
    seen = depth * height * width
    columns = P.reshape(P.permute(x, dims=(1, 4, 5, 0, 2, 3)), shape=(seen, batch * places[0] * places[1]))
    sums = P.dot(P.reshape(weight, shape=(filters, seen)), columns, dtype=dtypes.int32)
    return P.permute(P.reshape(sums, shape=(filters, batch, *places)), dims=(1, 0, 2, 3))


@pytest.mark.parametrize("target", here())
@pytest.mark.parametrize(
    ("shape", "filters", "size"), [((2, 3, 9, 21), 7, 3), ((1, 8, 10, 10), 16, 1), ((2, 8, 7, 19), 9, 3)]
)
def test_convolutions_are_exact(target: str, shape: tuple[int, ...], filters: int, size: int) -> None:
    """One kernel, with the same instruction; it pads with the zero point."""
    x, weight = numbers(shape, dtypes.uint8), numbers((filters, shape[1], size, size), dtypes.int8)

    def function(x: mt.Tensor, weight: mt.Tensor) -> mt.Tensor:
        return convolution(x, weight, size // 2, 131)

    kernel = kernel_of(function, [x, weight], here()[target])
    assert "a schedule is refused" not in repr(kernel.schedule)
    wanted = function(mt.tensor(x), mt.tensor(weight)).numpy()
    assert np.array_equal(run(kernel, [x, weight]).reshape(wanted.shape), wanted)


def test_a_group_of_channels_is_of_one_place() -> None:
    """With whole groups of channels these go innermost, so that the loop over them has nothing to do with the edges."""
    x, weight = numbers((2, 64, 28, 28), dtypes.uint8), numbers((64, 64, 3, 3), dtypes.int8)
    kernel = kernel_of(lambda x, weight: convolution(x, weight, 1, 3), [x, weight], VNNI["avx512"])
    assert repr(kernel.schedule).startswith("reorder('j1', 'j2', 'j0')")
    (packing,) = (loop for loop in inner_loops(kernel.assembly) if "vpunpcklbw" in loop or "vpermt2b" in loop)
    assert "vpcmp" not in packing and packing.count("\n") < 40


def filtered(x: mt.Tensor, weight: mt.Tensor, stride: int) -> mt.Tensor:
    """A filter for each channel of an image, with sums in int32."""
    channels, height, width = weight.shape
    for dim, size in ((1, height), (2, width)):
        x = P.unfold(x, dim=dim, size=size, step=stride, dilation=1)
    x = P.reshape(P.permute(x, dims=(0, 3, 4, 1, 2)), shape=(channels, height * width, x.shape[1] * x.shape[2]))
    return P.dot(P.reshape(weight, shape=(channels, 1, height * width)), x, dtype=dtypes.int32)


@pytest.mark.parametrize("target", here())
def test_a_filter_for_each_channel_is_exact(target: str) -> None:
    """Windows of neighbours, of all lengths, at the ends of rows too, and at the end of the image."""
    random = np.random.default_rng(sorted(here()).index(target))
    for turn in range(10):
        (left, right), stride = PAIRS[turn % 4], int(random.integers(1, 4))
        height, width = (int(each) for each in random.integers(1, 6, 2))
        sides = [int(each) + stride * int(random.integers(1, 40)) for each in (height, width)]
        x, weight = numbers((3, *sides), left, turn), numbers((3, height, width), right, turn)
        kernel = kernel_of(lambda x, weight, stride=stride: filtered(x, weight, stride), [x, weight], here()[target])
        wanted = filtered(mt.tensor(x), mt.tensor(weight), stride).numpy()
        found = run(kernel, [x, weight]).reshape(wanted.shape)
        assert np.array_equal(found, wanted), (left, right, stride, height, width, sides)


@pytest.mark.parametrize(
    ("target", "instruction", "count"),
    [(VNNI["avx512"], "vpdpbusd", 3), (VNNI["avx2"], "vpdpbusd", 3), (TARGETS["avx2"], "vpmaddwd", 6)],
)
@pytest.mark.parametrize("stride", [1, 2])
def test_a_row_of_a_filter_is_one_instruction(target: Target, instruction: str, count: int, stride: int) -> None:
    """Three terms with `vpdpbusd`, two with `vpmaddwd`, and no other product."""
    x, weight = numbers((3, 114, 114), dtypes.uint8), numbers((3, 3, 3), dtypes.int8)
    kernel = kernel_of(lambda x, weight: filtered(x, weight, stride), [x, weight], target)
    loop = max(inner_loops(kernel.assembly), key=len)
    assert count <= loop.count(instruction) <= 2 * count and "vpmulld" not in loop


@pytest.mark.parametrize("target", here())
def test_rows_times_a_vector_are_exact(target: str) -> None:
    """A weight as a linear layer keeps it is read where it is, whatever is left over at the end of a row."""
    random = np.random.default_rng(1)
    for turn in range(12):
        left, right = PAIRS[turn % 4]
        k, n = int(random.integers(1, 80)) * int(random.choice([1, 4, 16])), int(random.integers(1, 30))
        a, b = numbers((1, k), left, turn), numbers((n, k), right, turn)
        kernel = kernel_of(TURNED[False, True], [a, b], here()[target])
        assert "a schedule is refused" not in repr(kernel.schedule), (k, n)
        assert "pack" not in repr(kernel.schedule)
        assert np.array_equal(run(kernel, [a, b]), expected(a, b.T)), (k, n, left, right)


@pytest.mark.parametrize(
    ("target", "instruction"), [(VNNI["avx512"], "vpdpbusd"), (VNNI["avx2"], "vpdpbusd"), (TARGETS["avx2"], "vpmaddwd")]
)
def test_rows_times_a_vector_are_one_instruction_for_a_vector(target: Target, instruction: str) -> None:
    a, b = numbers((1, 1024), dtypes.uint8), numbers((64, 1024), dtypes.int8)
    loop = kernel_of(TURNED[False, True], [a, b], target).steps[-1].inner_loop
    assert loop.count(instruction) == 4 and "vpmulld" not in loop


@pytest.mark.parametrize("kind", ["matrix", "layer"])
def test_a_vector_is_quantised_once(kind: str) -> None:
    """Its integers are stored: the product has two operations for each weight, and no more."""
    weight = mt.tensor(numbers((48, 64), dtypes.int8))
    scale = mt.tensor(0.01)

    def matrix(x: mt.Tensor) -> mt.Tensor:
        rounded = mt.round(x / scale).clamp(-128, 127).to(mt.int8)
        return P.dot(rounded, weight.T, dtype=mt.int32)

    def layer(x: mt.Tensor) -> mt.Tensor:
        qparams = mt.quantization.QParams(scale, mt.tensor(3, dtype=mt.int32), mt.int8, -128, 127, None)
        given = mt.quantization.dequantize(mt.quantization.quantize(x, qparams), qparams)
        return given @ (weight.float() * 0.5).T

    frozen = mt.freeze({"matrix": matrix, "layer": layer}[kind], mt.ones(1, 64))
    mt.manual_seed(0)  # a sum of floats that nearly cancels would be further from that of integers
    x = mt.randn(1, 64)
    assert sum(kernel.flops for kernel in frozen.ledger(x).kernels) < 3 * 48 * 64
    np.testing.assert_allclose(frozen(x).numpy(), {"matrix": matrix, "layer": layer}[kind](x).numpy(), rtol=1e-5)


def test_the_rest_of_a_row_is_one_masked_instruction() -> None:
    """784 numbers are 12 vectors and a quarter."""
    a, b = numbers((1, 784), dtypes.uint8), numbers((64, 784), dtypes.int8)
    for target in VNNI.values():
        assembly = kernel_of(TURNED[False, True], [a, b], target).assembly
        assert "vpmulld" not in assembly and "vpinsrb" not in assembly and "vpgather" not in assembly


def requantised(a: mt.Tensor, b: mt.Tensor, scale: mt.Tensor, shift: mt.Tensor) -> mt.Tensor:
    """A quantised layer: scale per channel, bias, ReLU, rounding, zero point, clamp."""
    real = (product(a, b).to(mt.float32) * scale + shift).relu()
    return mt.clamp(mt.round(real) + 3.0, 0, 255).to(mt.uint8)


@pytest.mark.parametrize("target", here())
def test_requantisation_is_the_epilogue(target: str) -> None:
    """One kernel, with the bits of eager mode."""
    a, b = numbers((13, 66), dtypes.uint8), numbers((66, 37), dtypes.int8)
    random = np.random.default_rng(0)
    scale, shift = (random.random((2, 37)) * [[2e-4], [90.0]]).astype(np.float32)
    kernel = kernel_of(requantised, [a, b, scale, shift], here()[target])
    wanted = requantised(*map(mt.tensor, (a, b, scale, shift))).numpy()
    assert len(np.unique(wanted)) > 20 and np.array_equal(kernel.steps[-1](a, b, scale, shift).numpy(), wanted)


def test_requantisation_is_vectorised() -> None:
    """Whole vectors are converted, and stored as bytes; no loop converts a single number."""
    arrays = [numbers((96, 64), dtypes.uint8), numbers((64, 128), dtypes.int8), *np.ones((2, 128), np.float32)]
    for target, stored in ((VNNI["avx512"], "vpmovdb"), (TARGETS["avx2"], "vmovq")):
        loops = inner_loops(kernel_of(requantised, arrays, target).assembly)
        (epilogue,) = (loop for loop in loops if "vcvtdq2ps" in loop)
        assert "vcvttps2dq" in epilogue and stored in epilogue
        assert not any("cvttss2si" in loop or "cvtsi2ss" in loop for loop in loops)


@pytest.mark.parametrize(
    ("target", "kinds", "instruction", "times"),
    [
        (VNNI["avx512"], (dtypes.uint8, dtypes.int8), "vpdpbusd", 24),
        (VNNI["avx512"], (dtypes.int8, dtypes.uint8), "vpdpbusd", 24),
        (VNNI["avx512"], (dtypes.int8, dtypes.int8), "vpdpwssd", 24),
        (VNNI["avx2"], (dtypes.uint8, dtypes.int8), "vpdpbusd", 12),
        (TARGETS["avx512"], (dtypes.uint8, dtypes.int8), "vpmaddwd", 24),
        (TARGETS["avx2"], (dtypes.uint8, dtypes.int8), "vpmaddwd", 12),
        (TARGETS["sse2"], (dtypes.uint8, dtypes.uint8), "pmaddwd", 12),
    ],
)
def test_the_inner_loop_has_an_instruction_for_each_accumulator(
    target: Target, kinds: tuple[DType, DType], instruction: str, times: int
) -> None:
    """As many as of multiply-adds in a product of floats; no product of 32-bit integers, and nothing that saturates."""
    a, b = numbers((96, 64), kinds[0]), numbers((64, 128), kinds[1])
    loops = [
        [line.split()[1 if line.startswith("{") else 0] for line in loop.splitlines() if line]
        for loop in inner_loops(kernel_of(product, [a, b], target).assembly)
    ]
    assert [loop.count(instruction) for loop in loops if instruction in loop] == [times]
    wrong = {"vpmulld", "pmulld", "pmuludq", "vpmaddubsw", "pmaddubsw", "vpdpbusds", "imull"}
    assert not wrong & {name for loop in loops for name in loop}


def test_every_step_of_a_schedule_gives_the_same_numbers() -> None:
    """The steps as Python, for k that is no multiple of a group."""
    a, b = numbers((3, 7), dtypes.uint8), numbers((7, 18), dtypes.int8)
    for target in (VNNI["avx512"], TARGETS["avx2"]):
        steps = kernel_of(product, [a, b], target).steps
        assert any(step.rewrite is not None and step.rewrite.name == "group" for step in steps)
        for step in steps:
            out = np.zeros(3 * 18, np.int32)
            compiled(step.source)(a.ravel(), b.ravel(), out)
            assert np.array_equal(out.reshape(3, 18), expected(a, b)), step
