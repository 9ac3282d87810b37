"""Dynamic sizes of exported models: the numbers of the function for all lengths, or a refusal with the line."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import helper

import minitorch as mt
from minitorch.errors import TranslationError
from minitorch.nn import functional as F
from minitorch_onnx.reading.loading import module_of, parsed
from tests.onnx.exported import assert_dynamic, kinds, session
from tests.onnx.sized_programs import program
from tests.onnx.test_onnx_export import IMAGES, Block, Images, Positions, Words

random = np.random.default_rng(3)
ROWS = {"x": {0: "n"}}


def real(*shape):
    return mt.tensor(random.normal(size=shape).astype(np.float32))


def test_a_dynamic_batch():
    images = assert_dynamic(
        Images().eval(), {"x": {0: "batch"}}, [real(1, 3, 16, 16)], [real(2, 3, 16, 16)], [real(7, 3, 16, 16)]
    )
    assert kinds(images) == IMAGES
    assert images.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert images.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    words = mt.tensor(random.integers(0, 20, (5, 4)))
    assert_dynamic(Words().eval(), {"words": {0: "batch"}}, [words], [words[:1]], [words[:3]])


def test_two_dynamic_dimensions_and_what_is_computed_of_them():
    axes = {"x": {0: "batch", 1: "time"}}
    assert_dynamic(Block().eval(), axes, [real(2, 5, 16)], [real(1, 1, 16)], [real(3, 8, 16)])
    size = {"x": {0: "batch", 2: "height", 3: "width"}}
    assert_dynamic(Images().eval(), size, [real(1, 3, 16, 16)], [real(2, 3, 9, 24)])
    means = {"x": {0: "n"}}
    assert_dynamic(lambda x: (x.mean(0), x.flatten(), x[1:], x.std(0)), means, [real(4, 3)], [real(9, 3)])
    inner = {"x": {1: "k"}, "y": {0: "k"}}
    assert_dynamic(lambda x, y: x @ y, inner, [real(2, 3), real(3, 4)], [real(2, 6), real(6, 4)])


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x: mt.cat([x] * x.shape[0]), (2, 3)),
        (lambda x: x * mt.tensor(np.arange(x.shape[0], dtype=np.float32)).reshape(-1, 1), (2, 3)),
        (lambda x: x.cumprod(0), (4, 3)),
        (lambda x: x.chunk(3)[0] + 0, (9, 3)),
        (lambda x: x[: max(x.shape[0] - 7, 2)] + 1, (9, 3)),
        (lambda x: x + mt.ones(8, 3), (8, 3)),
    ],
)
def test_what_depends_on_a_size_in_another_way_is_refused_with_its_line(f, shape):
    with pytest.raises(TranslationError, match=r"(?s)where: test_onnx_sizes\.py:\d+") as error:
        mt.export.onnx(f, real(*shape), dynamic_axes={"x": {0: "n"}})
    assert error.value.code in ("MT802", "MT803")


@pytest.mark.parametrize(
    ("f", "example", "others"),
    [
        (lambda x: x[-4:] * 2, 8, (1, 3, 4, 5, 40)),
        (lambda x: x[:8] * 2, 3, (1, 7, 8, 9, 2000)),
        (lambda x: x[:8] * 2, 20, (1, 7, 8, 9, 2000)),
        (lambda x: x[:8].flatten() + 1, 5, (1, 8, 9)),
        (lambda x: x[-4:-1] + 0, 5, (1, 2, 3, 4, 9)),
        (lambda x: x.var(0), 2, (3, 9)),
        (lambda x: x.mean(0), 1, (2, 9)),
    ],
)
def test_slices_that_end_at_a_bound_or_are_all_of_a_dimension(f, example, others):
    assert_dynamic(f, {"x": {0: "n"}}, [real(example, 3)], *[[real(other, 3)] for other in others])


@pytest.mark.parametrize("length", [4, 8, 15, 16])
def test_lengths_that_a_function_does_not_take_are_left_out(length):
    words = [mt.tensor(random.integers(0, 20, (2, each))) for each in (length, 1, 2, 7, 16)]
    assert_dynamic(Positions().eval(), {"words": {1: "n"}}, *[[each] for each in words])


TABLE = real(512, 3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2 if x.shape[0] < 8 else x * 3,
        lambda x: x * (2 if x.shape[0] < 500 else 3),
        lambda x: (x + TABLE[: x.shape[0]]) * (2 if x.shape[0] < 100 else 3),
        lambda x: x * (2 if x.shape[0] % 4 == 2 else 3),
        lambda x: x * (2 if 1000 < x.shape[0] < 1010 else 3),
        lambda x: x * (2 if x.shape[0] / 2 > 60.5 else 3),
        lambda x: x * (2 if int(x.shape[0]) < 100 else 3),
        lambda x: x * {77: 2}.get(x.shape[0], 3),
        lambda x: x * (2 if x.shape[0] ** 2 == 1600 else 3),
    ],
)
def test_a_branch_by_a_size_is_refused_however_far_from_the_example(f):
    for example in (3, 8, 16):
        with pytest.raises(TranslationError, match="MT803"):
            mt.export.onnx(f, real(example, 3), dynamic_axes=ROWS)


def test_a_branch_by_two_sizes_is_refused():
    with pytest.raises(TranslationError, match="MT803"):
        mt.export.onnx(
            lambda x, y: x.sum(0) * (2 if x.shape[0] == y.shape[0] else 1) + y.sum(0), real(8, 3), real(16, 3),
            dynamic_axes={"x": {0: "n"}, "y": {0: "m"}},
        )  # fmt: skip


def test_a_refusal_says_the_line_and_the_decision():
    def f(x):
        return x.exp() if x.shape[0] > 100 else x

    with pytest.raises(TranslationError, match=r"decides by `n > 100`(?s:.*)where: test_onnx_sizes\.py:\d+"):
        mt.export.onnx(f, real(8, 3), dynamic_axes=ROWS)


@pytest.mark.parametrize(
    ("f", "others"),
    [
        (lambda x: (x + TABLE[: x.shape[0]])[-100:] * 2, (5, 99, 100, 101, 512)),
        (lambda x: x[:2048] * 2, (3, 2047, 2048, 2049, 3000)),
        (lambda x: x[5:-5] + 1, (3, 5, 9, 10, 11, 40)),
        (lambda x: x[: x.shape[0] // 2] + 1, (3, 4, 17)),
        (lambda x: F.pad(x, (0, 0, x.shape[0], 2)) * 2, (3, 8, 30)),
        (lambda x: x[: x.shape[0] - x.shape[0] % 8] * 2, (7, 8, 9, 30)),
        (lambda x: mt.cat([x, mt.zeros((8 - x.shape[0] % 8) % 8, 3)]) * 2, (7, 8, 9, 30)),
        (lambda x: x.reshape(-1)[: x.shape[0] ** 2 // 4] + 1, (3, 4, 5, 30)),
        (lambda x: mt.cat(x.chunk(2)[::-1]) + 1, (3, 4, 5, 30)),
        (lambda x: x * (1 / x.shape[0]) + x / x.shape[0] ** 0.5, (1, 3, 30)),
        (lambda x: x * mt.linspace(0, 1, x.shape[0])[:, None], (3, 30)),
        (lambda x: x[:, :1] * mt.tril(mt.ones(x.shape[0], x.shape[0])), (3, 30)),
        (lambda x: F.conv1d(x.t()[None], real(4, 3, 3).fill_(0.5), stride=2).mean(-1), (3, 7, 8, 31)),
    ],
)
def test_numbers_that_a_function_computes_of_a_size(f, others):
    for example in (8, 20):
        assert_dynamic(f, ROWS, [real(example, 3)], *[[real(other, 3)] for other in others])


def test_sums_products_and_quotients_of_sizes():
    def decoder(past, x):
        keys = mt.cat([past, x], 1).reshape(2, -1, 2, 2)
        seen = mt.arange(keys.shape[1]) <= mt.arange(x.shape[1])[:, None] + past.shape[1]
        return keys.sum((2, 3))[:, None] * seen

    axes = {"past": {1: "past"}, "x": {1: "time"}}
    assert_dynamic(decoder, axes, [real(2, 3, 4), real(2, 5, 4)], [real(2, 9, 4), real(2, 1, 4)])
    patches = assert_dynamic(
        lambda x: x.reshape(x.shape[0], -1, 4, 3) + 0, {"x": {1: "t"}}, [real(1, 32, 3)], [real(1, 8, 3)]
    )
    assert kinds(patches) == ["Reshape", "Add"]
    square = {"x": {0: "n", 1: "n"}}
    assert_dynamic(lambda x: (x.flatten() + 0, mt.diagonal(x) + 0), square, [real(4, 4)], [real(7, 7)])
    assert_dynamic(lambda x: mt.diagonal(x, 1) + 0, {"x": {0: "n", 1: "m"}}, [real(4, 7)], [real(5, 5)], [real(9, 4)])

    def unet(x):
        deep = F.max_pool2d(x, 2).repeat_interleave(2, 2).repeat_interleave(2, 3)
        return mt.cat([x, deep], 1)

    assert_dynamic(unet, {"x": {2: "h", 3: "w"}}, [real(1, 3, 32, 32)], [real(1, 3, 4, 10)])


@pytest.mark.parametrize("length", [4, 5, 7, 8, 16])
def test_a_size_may_coincide_with_another_length(length):
    def positions(x):
        return x + mt.sin(mt.arange(x.shape[1]).float()[:, None] / 10 ** (mt.arange(8) / 8.0))

    assert_dynamic(positions, {"x": {1: "t"}}, [real(2, length, 8)], [real(2, 8, 8)], [real(2, 3, 8)])
    axes = {"z": {0: "b", 1: "t"}}
    assert_dynamic(lambda z: mt.topk(z, 3, -1)[0], axes, [real(2, length, 16)], [real(length, 3, 16)])


def test_an_empty_batch():
    def f(x):
        return x.reshape(x.shape[0] * x.shape[1], 2, 3).sum(1).reshape(x.shape[0], x.shape[1], 3)

    axes = {"x": {0: "a", 1: "b"}}
    assert_dynamic(f, axes, [real(4, 5, 6)], [real(3, 0, 6)], [real(0, 5, 6)], [real(0, 0, 6)])


def test_images_of_any_size_and_number_are_convolved():
    layers = mt.nn.Conv2d(1, 8, 3), mt.nn.ReLU(), mt.nn.Conv2d(8, 8, 7, 2, 3), mt.nn.MaxPool2d(2), mt.nn.Flatten()
    batch = {"input": {0: "batch"}}
    found = mt.export.onnx(
        mt.nn.Sequential(*layers, mt.nn.Linear(8 * 56 * 56, 10)).eval(), mt.ones(1, 1, 226, 226), dynamic_axes=batch
    )
    assert kinds(found) == ["Conv", "Relu", "Conv", "MaxPool", "Reshape", "Gemm"]


def test_a_branch_of_a_model_that_was_read_is_decided_by_its_size():
    numbers = [onnx.numpy_helper.from_array(np.array(value), name) for name, value in (("zero", 0), ("hundred", 100))]

    def branch(factor):
        known = [onnx.numpy_helper.from_array(np.array(factor, np.float32), f"factor{factor}")]
        nodes = [helper.make_node("Mul", ["x", f"factor{factor}"], [f"y{factor}"])]
        result = helper.make_tensor_value_info(f"y{factor}", onnx.TensorProto.FLOAT, None)
        return helper.make_graph(nodes, "branch", [], [result], known)

    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["n"]),
        helper.make_node("Less", ["n", "hundred"], ["is_less"]),
        helper.make_node("If", ["is_less"], ["y"], then_branch=branch(2), else_branch=branch(3)),
    ]
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3]) for name in ("x", "y"))
    graph = helper.make_graph(nodes, "branching", [x], [y], numbers)
    read = module_of(parsed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()))
    assert [read(mt.ones(length, 3))[0, 0].item() for length in (99, 100)] == [2, 3]
    with pytest.raises(TranslationError, match="MT803"):
        mt.export.onnx(read, real(8, 3), dynamic_axes=ROWS)


@pytest.mark.parametrize("name", ["torch_gru", "torch_lstm", "torch_cnn"])
def test_models_of_others_are_exported_again_with_a_dynamic_size(name):
    given = (Path(__file__).parents[1] / "recorded" / "onnx" / f"{name}.onnx").read_bytes()
    model = module_of(parsed(given)).eval()
    shapes = {"torch_gru": (3, 2, 4), "torch_lstm": (2, 4), "torch_cnn": (2, 1, 8, 8)}
    axis = 1 if name == "torch_gru" else 0
    examples = [real(*[batch if at == axis else each for at, each in enumerate(shapes[name])]) for batch in (2, 5)]
    first, other = [each.abs().long() if name == "torch_lstm" else each for each in examples]
    assert_dynamic(lambda x: model(x), {"x": {axis: "batch"}}, [first], [other])


def test_our_own_models_are_exported_again_with_their_dynamic_sizes():
    def attend(x):
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)

    axes = {"x": {0: "b", 1: "t"}}
    again = module_of(parsed(mt.export.onnx(attend, real(8, 16, 4), dynamic_axes=axes).SerializeToString()))
    assert_dynamic(lambda x: again(x), axes, [real(8, 16, 4)], [real(3, 5, 4)], [real(1, 1, 4)])


@pytest.mark.parametrize("part", range(4))
def test_random_functions_of_sizes_are_exported_right_or_refused(part):
    outcomes: Counter[str] = Counter()
    for seed in range(25 * part, 25 * part + 25):
        made, choose = program(seed), Random(seed)
        lengths = [choose.choice([4, 5, 8, 16, 20, 33]) for _ in made.arguments]
        try:
            made.function(*[real(length, 3) for length in lengths])
        except (IndexError, RuntimeError, ValueError):
            continue
        axes = {name: {0: f"rows_of_{name}"} for name in made.arguments}
        try:
            model = mt.export.onnx(made.function, *[real(length, 3) for length in lengths], dynamic_axes=axes)
        except TranslationError as error:
            assert error.code in ("MT802", "MT803")
            outcomes["refused"] += 1
            continue
        outcomes["exported"] += 1
        runner = session(model)
        for _ in range(12):
            given = [real(choose.choice([*range(3, 18), 24, 31, 49, 50, 51, 99, 100, 101, 200, 333]), 3) for _ in axes]
            try:
                ours = made.function(*given).numpy()
            except (IndexError, RuntimeError, ValueError):
                continue
            feeds = {each.name: x.numpy() for each, x in zip(model.graph.input, given, strict=True)}
            (theirs,) = runner.run(None, feeds)
            assert theirs.shape == ours.shape, (made.text, lengths, [x.shape for x in given])
            scale = max(1.0, float(np.abs(ours).max(initial=0)))
            np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-3 * scale, err_msg=made.text)
    assert outcomes["exported"] > outcomes["refused"] > 0


def test_wrong_dynamic_axes():
    with pytest.raises(ValueError, match="there is no argument or result 'y'; there are x, output"):
        mt.export.onnx(lambda x: x, mt.ones(2), dynamic_axes={"y": {0: "n"}})
    with pytest.raises(ValueError, match="x has 1 dimensions, and none of number 1"):
        mt.export.onnx(lambda x: x, mt.ones(2), dynamic_axes={"x": {1: "n"}})
    with pytest.raises(ValueError, match=r"the dimensions 'n' have the lengths \[2, 3\]"):
        mt.export.onnx(lambda x: x, mt.ones(2, 3), dynamic_axes={"x": {0: "n", 1: "n"}})


class Cached(mt.nn.Module):
    """It keeps a table for the longest input so far, and notes what it saw."""

    def __init__(self):
        super().__init__()
        self.length, self.table, self.seen, self.last = 0, None, [], None

    def forward(self, x):
        n = x.shape[0]
        self.seen.append(n)
        self.last = n / 2
        if n > self.length:
            self.length, self.table = n, mt.arange(n).float()[:, None]
        return x + self.table[:n]


@pytest.mark.parametrize("axes", [None, {"x": {0: "n"}}])
def test_an_export_leaves_a_module_that_keeps_numbers_as_it_was(axes):
    module = Cached().eval()
    module(mt.ones(2, 4))
    with contextlib.suppress(TranslationError):  # a table that depends on the calls before may be refused
        mt.export.onnx(module, mt.ones(6, 4), dynamic_axes=axes)
    assert module.seen == [2] and type(module.last) is float and module.length == 2
    assert module(mt.ones(3, 4))[:, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("cut", [lambda h: h[:15], lambda h: h[-15:]], ids=["first", "last"])
def test_a_part_of_what_a_recurrence_gives(cut):
    layer = mt.nn.RNN(2, 2, bidirectional=True).eval()
    assert_dynamic(
        lambda x: cut(layer(x)[0]), {"x": {0: "t"}}, [real(6, 1, 2)], *[[real(n, 1, 2)] for n in (3, 15, 40)]
    )


@pytest.mark.parametrize("plainly", [
    lambda n: n & 64, lambda n: n.bit_length(), lambda n: 1 << n, lambda n: len(range(n)), lambda n: [0] * n == [],
    lambda n: float(n), lambda n: n in {700}, lambda n: round(n / 3), lambda n: np.zeros(n).sum(),
])  # fmt: skip
def test_a_size_that_becomes_a_plain_number_is_refused_with_the_line(plainly):
    with pytest.raises(
        TranslationError, match=r"(?s)takes the dynamic size `.*` for a plain number.*test_onnx_sizes.py"
    ):
        mt.export.onnx(lambda x: x * float(plainly(x.shape[0])), mt.ones(6, 4), dynamic_axes={"x": {0: "n"}})
