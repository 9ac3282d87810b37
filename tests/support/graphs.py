"""Random well-typed graphs over all primitives, arrays to run them on, and the plainest way to run them.

`graphs()` is a hypothesis strategy. Every graph it gives is legal, and every value in it is defined: indices
are in range, shifts are shorter than the type, floats are converted to integers only if these can hold them.
A backend must therefore give the bits (or, where it sums in another order, nearly the numbers) that
`evaluate_graph` gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from minitorch import dtypes
from minitorch import primitives as P
from minitorch.backends import get
from minitorch.dtypes import DType, bool_, int64
from minitorch.graph import Graph, apply, input_node, literal, topological_order
from minitorch.interpreters import settled
from minitorch.ir import INPUT, PRIMITIVES, Node, Primitive, Source, Spec
from minitorch.passes import lowered
from minitorch_xla.sharding.primitive import shard

Array = np.ndarray[Any, Any]
Draw = Callable[[Any], Any]
Pool = list[Node]

MOST_ELEMENTS = 200  # of a value; what would be larger is left out


def special_values(dtype: DType) -> list[Any]:
    """The values that laws break at."""
    if dtype is bool_:
        return [False, True]
    if dtype.is_floating_point:
        tiny = {"float16": 6e-8, "bfloat16": 1e-40, "float32": 1e-45, "float64": 5e-324}[dtype.name]
        huge = 6e4 if dtype.name == "float16" else 3e38 if dtype.name != "float64" else 1e308
        return [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, math.inf, -math.inf, math.nan, tiny, -tiny, huge, -huge]
    bounds = np.iinfo(dtype.numpy)
    return [value for value in (0, 1, 2, 3, 7, -1, -2) if bounds.min <= value] + [bounds.min, bounds.max]


def random_array(spec: Spec, random: np.random.Generator) -> Array:
    """Special values and ordinary ones, mixed."""
    special = np.array(special_values(spec.dtype))[random.integers(0, len(special_values(spec.dtype)), spec.shape)]
    low = -5 if spec.dtype.is_signed else 0
    ordinary = random.normal(size=spec.shape) if spec.dtype.is_floating_point else random.integers(low, 6, spec.shape)
    with np.errstate(all="ignore"):
        mixed = random.random(spec.shape) < 0.4
        chosen = np.where(mixed, special.astype(spec.dtype.numpy), np.asarray(ordinary).astype(spec.dtype.numpy))
    return np.asarray(chosen)


def arrays_for(graph: Graph, seed: int) -> list[Array]:
    """Values for the inputs of a graph."""
    random = np.random.default_rng(seed)
    return [random_array(node.spec, random) for node in graph.inputs]


def evaluate_graph(graph: Graph, arrays: list[Array], views: bool = False) -> list[Array]:
    """Run a graph: every node by its primitive's own evaluation, one after another.

    Args:
        views: whether views are views, as in eager mode; otherwise no value depends on strides.
    """
    values: dict[Node, Any] = dict(zip(graph.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [values[operand] for operand in node.inputs]
            value = node.primitive.evaluate(*operands, **node.params)
            values[node] = settled(value, node.primitive) if views else np.array(value, order="C")
            assert values[node].shape == node.shape and values[node].dtype == node.dtype.numpy, node
    return [values[node] for node in graph.outputs]


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays are the same but for the bits inside a NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    with np.errstate(all="ignore"):
        both_nan = (a != a) & (b != b)
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    bits = np.ascontiguousarray(a).view(unsigned) == np.ascontiguousarray(b).view(unsigned)
    return bool(np.all(both_nan | bits.reshape(a.shape)))


TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-9}


def assert_close(found: Array, expected: Array, where: object) -> None:
    """Equal shape and type; integers equal; floats close, with NaN and infinities in the same places."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype.name not in TOLERANCE:
        assert np.array_equal(found, expected), where
        return
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= TOLERANCE[found.dtype.name] * (1 + np.abs(b))
    assert ((a == b) | (np.isnan(a) & np.isnan(b)) | close).all(), where


def assert_compiled_agrees(graph: Graph, seed: int, **options: Any) -> None:
    """What the llvm backend makes of a graph computes what its nodes do, unless these find an index wrong."""
    arrays = arrays_for(graph, seed)
    try:
        expected = evaluate_graph(graph, arrays)
    except IndexError:
        return
    for found, value in zip(get("llvm")(lowered(graph), **options)(arrays), expected, strict=True):
        assert_close(np.asarray(found), value, (str(graph), options))


# Building blocks ------------------------------------------------------------------------------------------------


def specs(draw: Draw) -> Spec:
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 3, 4, 1, 2, 0)), max_size=3))
    return Spec(tuple(shape), draw(st.sampled_from(dtypes.ALL)))


def a_number(draw: Draw, spec: Spec) -> Node:
    return literal(draw(st.sampled_from(special_values(spec.dtype))), spec)


def an_array(draw: Draw, spec: Spec) -> Node:
    return literal(random_array(spec, np.random.default_rng(draw(st.integers(0, 1000)))))


def defined_cast(x: Node, dtype: DType) -> Node:
    """A conversion whose result is defined: a float goes to an integer type if that has room for it."""
    if x.dtype.is_floating_point and dtype.category == "int":
        size = apply(P.absolute, x)
        fits = apply(P.less, size, literal(100, x.spec))
        x = apply(P.where, fits, x if dtype.is_signed else size, literal(0, x.spec))
    return x if x.dtype is dtype else apply(P.cast, x, dtype=dtype)


def one_of(draw: Draw, pool: Pool, fits: Callable[[Spec], bool], or_type: DType) -> Node:
    """A value that fits, or any value in a type that does."""
    fitting = [node for node in pool if fits(node.spec)]
    if fitting:
        return draw(st.sampled_from(fitting))
    return defined_cast(draw(st.sampled_from(pool)), or_type)


def one_like(draw: Draw, pool: Pool, spec: Spec) -> Node:
    """A value of a given shape and type: one that is there, or a number, or an array."""
    there = [node for node in pool if node.spec == spec]
    choice = draw(st.integers(0, 9))
    if there and choice < 6:
        return draw(st.sampled_from(there))
    return a_number(draw, spec) if choice < 9 else an_array(draw, spec)


@cache
def accepted(primitive: Primitive) -> tuple[DType, ...]:
    """The types that an elementwise primitive takes."""
    count = 2 if primitive.kind == "binary" else 1
    found = []
    for dtype in dtypes.ALL:
        try:
            primitive.infer(*[Spec((), dtype)] * count)
        except TypeError:
            continue
        found.append(dtype)
    return tuple(found)


# One function per kind of primitive: a node that applies it to something in the pool, or None if there is nothing.


def make_unary(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    if primitive is P.cast:
        return defined_cast(draw(st.sampled_from(pool)), draw(st.sampled_from(dtypes.ALL)))
    if primitive is P.bitcast:
        # Of what was computed, the last bits may differ, and those of NaN may be any.
        x = draw(st.sampled_from([each for each in pool if not each.dtype.is_floating_point or not each.inputs]))
        alike = [each for each in dtypes.ALL if each.itemsize == x.dtype.itemsize and each is not bool_]
        return apply(P.bitcast, x, dtype=draw(st.sampled_from(alike)))
    if primitive is P.check:
        x = one_of(draw, pool, lambda spec: spec.dtype is int64, int64)
        low, high = -(2**63), 2**63 - 1  # of an input, too, which is then the result
        if draw(st.booleans()):
            low, high, x = 0, 4, apply(P.remainder, x, literal(5, x.spec))
        return apply(P.check, x, low=low, high=high, what="f: x", error="ValueError")
    types = accepted(primitive)
    return apply(primitive, one_of(draw, pool, lambda spec: spec.dtype in types, draw(st.sampled_from(types))))


def make_binary(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    types = accepted(primitive)
    a = one_of(draw, pool, lambda spec: spec.dtype in types, draw(st.sampled_from(types)))
    b = one_like(draw, pool, a.spec)
    if primitive in (P.shift_left, P.shift_right):
        return apply(primitive, a, apply(P.bitwise_and, b, literal(a.dtype.itemsize * 8 - 1, b.spec)))
    return apply(primitive, a, b) if draw(st.booleans()) else apply(primitive, b, a)


def make_ternary(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    a = draw(st.sampled_from(pool))
    b = one_like(draw, pool, a.spec)
    condition = one_like(draw, pool, Spec(a.shape, bool_))
    return apply(primitive, condition, a, b) if draw(st.booleans()) else apply(primitive, condition, b, a)


def make_source(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    if primitive is P.iota:
        number_type = draw(st.sampled_from([each for each in dtypes.ALL if each is not bool_]))
        return apply(P.iota, size=draw(st.integers(0, 5)), dtype=number_type)
    return (a_number if draw(st.booleans()) else an_array)(draw, specs(draw))


def make_random(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    state = literal(np.array([draw(st.integers(0, 9)), draw(st.integers(0, 3))]))
    return apply(primitive, state, shape=specs(draw).shape)


def make_reduction(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    x = draw(st.sampled_from(pool))
    dims = draw(st.sets(st.integers(0, x.spec.ndim - 1))) if x.spec.ndim else ()
    return apply(primitive, x, dims=tuple(sorted(dims)))


def make_along_dim(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    """argmax, cumsum and argsort."""
    x = one_of(draw, pool, lambda spec: spec.ndim > 0 and spec.dtype is not bool_, dtypes.float32)
    if x.spec.ndim == 0:
        return None
    dim = draw(st.integers(0, x.spec.ndim - 1))
    if primitive is P.argmax and x.shape[dim] == 0:
        return None
    more = {"descending": draw(st.booleans())} if primitive is P.argsort else {}
    return apply(primitive, x, dim=dim, **more)


def make_reshape(draw: Draw, x: Node) -> Node:
    shape = list(x.shape)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(shape)))
        if draw(st.booleans()) and len(shape) < 4:
            shape.insert(at, 1)
        elif len(shape) > 1:
            at = min(at, len(shape) - 2)
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
    return apply(P.reshape, x, shape=tuple(shape))


def make_permute(draw: Draw, x: Node) -> Node:
    return apply(P.permute, x, dims=tuple(draw(st.permutations(range(x.spec.ndim)))))


def make_expand(draw: Draw, x: Node) -> Node:
    new = tuple(draw(st.lists(st.integers(1, 3), max_size=4 - min(x.spec.ndim, 4))))
    return apply(P.expand, x, shape=new + tuple(n if n != 1 else draw(st.integers(0, 3)) for n in x.shape))


def make_slice(draw: Draw, x: Node) -> Node:
    bounds = [sorted((draw(st.integers(0, n)), draw(st.sampled_from((n, n, n // 2))))) for n in x.shape]
    step = tuple(draw(st.integers(1, 3)) for _ in x.shape)
    start, stop = tuple(low for low, _ in bounds), tuple(high for _, high in bounds)
    return apply(P.slice_, x, start=start, stop=stop, step=step)


def make_pad(draw: Draw, x: Node) -> Node:
    amounts = st.sampled_from((0, 0, 0, 1, 2))
    padding = tuple((draw(amounts), draw(amounts), draw(amounts)) for _ in x.shape)
    return apply(P.pad, x, padding=padding, value=draw(st.sampled_from(special_values(x.dtype))))


def make_flip(draw: Draw, x: Node) -> Node:
    dims = draw(st.sets(st.integers(0, x.spec.ndim - 1))) if x.spec.ndim else ()
    return apply(P.flip, x, dims=tuple(sorted(dims)))


def make_concatenate(draw: Draw, x: Node) -> Node | None:
    if x.spec.ndim == 0:
        return None
    dim = draw(st.integers(0, x.spec.ndim - 1))
    parts = [x] * draw(st.integers(1, 2))
    if draw(st.booleans()):
        length = draw(st.integers(0, 3))
        parts.append(an_array(draw, Spec((*x.shape[:dim], length, *x.shape[dim + 1 :]), x.dtype)))
    return apply(P.concatenate, *parts, dim=dim)


def make_unfold(draw: Draw, x: Node) -> Node | None:
    dims = [dim for dim, length in enumerate(x.shape) if length]
    if not dims or x.spec.ndim > 3:
        return None
    dim = draw(st.sampled_from(dims))
    size = draw(st.integers(1, x.shape[dim]))
    dilation = draw(st.integers(1, max(1, (x.shape[dim] - 1) // max(size - 1, 1))))
    return apply(P.unfold, x, dim=dim, size=size, step=draw(st.integers(1, 2)), dilation=dilation)


def make_diagonal(draw: Draw, x: Node) -> Node | None:
    if x.spec.ndim < 2:
        return None
    return apply(P.diagonal, x, offset=draw(st.integers(-x.shape[-2] - 1, x.shape[-1] + 1)))


def make_shard(draw: Draw, x: Node) -> Node:
    mesh = (("data", draw(st.integers(1, 3))), ("model", 2))
    left = ["data", "model"]
    axes = []
    for length in x.shape:
        fitting = [name for name in left if length % dict(mesh)[name] == 0 and draw(st.booleans())]
        axes.append(tuple(fitting))
        left = [name for name in left if name not in fitting] if length % 6 else []
    if any(
        length % math.prod([dict(mesh)[name] for name in names]) for length, names in zip(x.shape, axes, strict=True)
    ):
        axes = [()] * len(axes)
    return apply(shard, x, mesh=mesh, axes=tuple(axes), devices=())


MOVEMENTS: dict[Primitive, Callable[[Draw, Node], Node | None]] = {
    P.reshape: make_reshape,
    P.permute: make_permute,
    P.expand: make_expand,
    P.slice_: make_slice,
    P.pad: make_pad,
    P.flip: make_flip,
    P.concatenate: make_concatenate,
    P.unfold: make_unfold,
    P.diagonal: make_diagonal,
    P.barrier: lambda draw, x: apply(P.barrier, x),
    shard: make_shard,
}


def make_movement(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    x = pool[-1] if draw(st.booleans()) else draw(st.sampled_from(pool))  # often a chain
    return MOVEMENTS[primitive](draw, x)


def make_contraction(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    x = draw(st.sampled_from(pool))
    rows = draw(st.sampled_from([n for n in range(1, x.spec.size + 1) if x.spec.size % n == 0] or [0, 2]))
    columns = x.spec.size // rows if rows else draw(st.integers(0, 2))
    a = apply(P.reshape, x, shape=(rows, columns))
    b = apply(P.permute, a, dims=(1, 0))
    if draw(st.booleans()):
        other = {dtypes.int8: dtypes.uint8, dtypes.uint8: dtypes.int8}
        mixed = draw(st.booleans()) and x.dtype in other
        b = one_like(draw, pool, Spec((columns, draw(st.integers(0, 3))), other[x.dtype] if mixed else x.dtype))
    if draw(st.booleans()):
        a, b = (apply(P.expand, each, shape=(2, *each.shape)) for each in (a, b))
    wide = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}
    wide |= {dtypes.int8: dtypes.int32, dtypes.uint8: dtypes.int32}
    sums = wide.get(x.dtype, x.dtype)
    return apply(P.dot, a, b, dtype=draw(st.sampled_from((x.dtype, sums) if a.dtype is b.dtype else (sums,))))


def index_into(draw: Draw, pool: Pool, length: int, shape: tuple[int, ...]) -> Node:
    """Integers from 0 up to a length: computed ones, or written ones, which may also count from the end."""
    spec = Spec(shape, draw(st.sampled_from((int64, dtypes.int32))))
    if draw(st.booleans()):
        return apply(P.remainder, one_like(draw, pool, spec), literal(length, spec))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    return literal(np.asarray(random.integers(-length, length, shape)).astype(spec.dtype.numpy))


def make_indexing(draw: Draw, pool: Pool, primitive: Primitive) -> Node | None:
    x = draw(st.sampled_from(pool))
    count = draw(st.integers(1, 2))
    if x.spec.ndim < count or 0 in x.shape[:count]:
        return None
    shape = draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,), *(node.shape for node in pool if node.spec.ndim < 3)]))
    indices = [index_into(draw, pool, length, shape) for length in x.shape[:count]]
    if primitive is P.gather:
        return apply(primitive, x, *indices)
    return apply(primitive, x, one_like(draw, pool, Spec(shape + x.shape[count:], x.dtype)), *indices)


MAKERS: dict[str, Callable[[Draw, Pool, Primitive], Node | None]] = {  # by kind of the primitive
    "unary": make_unary,
    "binary": make_binary,
    "ternary": make_ternary,
    "source": make_source,
    "random": make_random,
    "reduction": make_reduction,
    "argreduction": make_along_dim,
    "scan": make_along_dim,
    "sort": make_along_dim,
    "movement": make_movement,
    "contraction": make_contraction,
    "indexing": make_indexing,
    "decomposition": lambda draw, pool, primitive: None,  # it amplifies rounding, and refuses singular matrices
}

# Laws and fusion live where the rarer kinds meet, so these come more often than their number among the primitives says.
WEIGHTS = {"movement": 3, "reduction": 3, "contraction": 4, "indexing": 4, "ternary": 3, "sort": 3, "argreduction": 3}


@st.composite
def graphs(
    draw: Draw, max_nodes: int = 10, primitives: tuple[Primitive, ...] | None = None, sources: bool = True
) -> Graph:
    """A random graph.

    Args:
        max_nodes: operations asked for; some bring helpers along.
        primitives: which ones to choose from; all by default.
        sources: whether some nodes have a line of a program.
    """
    rows = tuple(PRIMITIVES.values()) if primitives is None else primitives
    choices = [primitive for primitive in rows for _ in range(WEIGHTS.get(primitive.kind, 1))]
    inputs = tuple(input_node(f"x{index}", specs(draw)) for index in range(draw(st.integers(1, 3))))
    pool = list(inputs)
    for line in range(draw(st.integers(1, max_nodes))):
        primitive = draw(st.sampled_from(choices))
        node = MAKERS[primitive.kind](draw, pool, primitive)
        if node is None or node.spec.size > MOST_ELEMENTS or node.spec.ndim > 5:
            continue
        if sources and line % 2:
            node.source = Source("program.py", line)
        pool.append(node)
    outputs = draw(st.lists(st.sampled_from(pool[-4:]), min_size=1, max_size=3))
    program = [node for node in topological_order(pool) if node.primitive is not INPUT]
    return Graph(inputs, outputs, program)


# Programs of rows and columns --------------------------------------------------------------------------------------

POSITIVE_UNARY = (P.sqrt, P.tanh, P.log1p, P.absolute)
POSITIVE_BINARY = (P.add, P.mul, P.div, P.maximum)
SHAPES = ((1, 1), (3, 5), (2, 300), (5, 70), (40, 7), (300, 7), (17, 33), (2, 3, 40), (4, 9, 6))


@st.composite
def row_programs(draw: Draw) -> Graph:
    """Sums and maxima over rows or columns, brought back to all elements and combined with them, and again.

    These are what fusion is about: what one loop may compute for a whole row, and what it may not. All values are
    positive, so that the order of summation makes little difference, and everything is computed in float64.
    """
    spec = Spec(draw(st.sampled_from(SHAPES)), dtypes.float64)
    inputs = [input_node(name, spec) for name in "xy"]
    made: list[Node] = []
    for _ in range(draw(st.integers(2, 10))):
        pool = [node for node in (*inputs, *made) if node.spec == spec]
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        kind = draw(st.sampled_from(("unary", "binary", "binary", "statistic", "statistic", "number")))
        if kind == "statistic":
            made += statistic(draw, a, draw(st.sampled_from((P.reduce_sum, P.reduce_sum, P.reduce_max))))
            made.append(apply(draw(st.sampled_from(POSITIVE_BINARY)), b, made[-1]))
            if draw(st.booleans()):
                made.append(apply(draw(st.sampled_from(POSITIVE_BINARY)), a, made[-1]))
        elif kind == "unary":
            made.append(apply(draw(st.sampled_from(POSITIVE_UNARY)), a))
        else:
            b = literal(draw(st.sampled_from((0.5, 1.0, 3.0))), spec) if kind == "number" else b
            made.append(apply(draw(st.sampled_from(POSITIVE_BINARY)), *((a, b) if draw(st.booleans()) else (b, a))))
    program: dict[Node, None] = {}
    for node in made:
        program |= dict.fromkeys(operand for operand in node.inputs if operand.primitive is P.constant)
        program[node] = None
    outputs = [made[-1], *draw(st.lists(st.sampled_from(made), max_size=2))]
    return Graph(inputs, outputs, program)


def statistic(draw: Draw, x: Node, primitive: Primitive) -> list[Node]:
    """A reduction over some dimensions, and its result with the shape of what was reduced."""
    dims = tuple(sorted(draw(st.sets(st.integers(0, x.spec.ndim - 1), min_size=1))))
    reduced = apply(primitive, x, dims=dims)
    kept = apply(P.reshape, reduced, shape=tuple(1 if d in dims else n for d, n in enumerate(x.shape)))
    return [reduced, kept, apply(P.expand, kept, shape=x.shape)]


def assert_rows_agree(graph: Graph, seed: int) -> None:
    """What the llvm backend makes of a program of rows and columns agrees with its nodes, to nine digits."""
    arrays = positive_arrays(graph, seed)
    for found, value in zip(get("llvm")(lowered(graph))(arrays), evaluate_graph(graph, arrays), strict=True):
        np.testing.assert_allclose(np.asarray(found), value, rtol=1e-9, err_msg=str(graph))


def positive_arrays(graph: Graph, seed: int) -> list[Array]:
    """Values between 0.5 and 2 for the inputs of a graph."""
    random = np.random.default_rng(seed)
    return [random.uniform(0.5, 2.0, node.shape).astype(node.dtype.numpy) for node in graph.inputs]
