"""Functions where their derivatives are infinite, undefined or a choice: a table for this library and for PyTorch.

A row is a name, a function ``(library, its nn.functional, *tensors) -> tensor``, and nested lists of numbers, of which
float64 tensors are made. `tests/recorded/gradients.json` has PyTorch's gradients.
"""

import math
from typing import Any

INF = math.inf
CONSTANT = [[2.0, 2, 2], [1, 2, 3]]
SCORES = [[-INF, -INF, -INF], [INF, 1, 2], [-INF, 0, 1], [0, 0, 0], [1000, -1000, 0]]
PAIRS = [(0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 0.0), (0.0, -1.0), (1.0, INF), (2.0, 2.0)]
PAIRS += [(-2.0, 2.0), (1e200, 1e200), (2.0, -1.0), (0.0, -2.0), (0.0, 0.5), (1e-300, 1e300), (1e300, 1e-300)]

# A number, a lower and an upper bound: between, below, above, ties, bounds that cross, NaN at each place.
BOUNDED: list[tuple[float, float, float]]
BOUNDED = [(0.5, 0, 1), (-1.0, 0, 1), (2.0, 0, 1), (0.0, 1, 1), (2.0, 1, 1), (1.0, 1, 1), (0.0, 0, 1), (1.0, 0, 1)]
BOUNDED += [(0.0, 2, 1), (1.5, 2, 1), (3.0, 2, 1), (math.nan, 0, 1), (0.0, math.nan, 1), (0.0, 0, math.nan)]

ROWS: list[Any] = []


def row(name, function, *numbers):
    ROWS.append((name, function, numbers))


def weighted(library, y):
    """Every element counts differently, so that a gradient that is shared out wrongly shows."""
    return y * library.arange(1, y.shape[-1] + 1, dtype=library.float64)


# Lengths and deviations: constant rows, rows of zeros, one element -----------------------------------------------

for _name in ("std", "var"):
    row(f"{_name} of equals", lambda L, F, x, n=_name: getattr(x, n)(), [3.0, 3, 3])
    row(f"{_name} of rows", lambda L, F, x, n=_name: getattr(x, n)(1), CONSTANT)
    row(f"{_name}, correction 0", lambda L, F, x, n=_name: getattr(x, n)(dim=1, correction=0), CONSTANT)
    row(f"{_name} of one", lambda L, F, x, n=_name: getattr(x, n)(correction=0), [3.0])
    row(f"{_name} of zeros", lambda L, F, x, n=_name: getattr(x, n)(0, keepdim=True), [[0.0], [0.0]])
    row(f"{_name}_mean", lambda L, F, x, n=_name: sum(getattr(L, f"{n}_mean")(x, dim=1)), CONSTANT)
for _p in (0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1, -0.5):
    for _x in ([0.0, 0, 0], [0.0, 1, -2], [1.0, -1, 1], [0.0], [-0.0, 0.0]):
        row(f"norm {_p} of {_x}", lambda L, F, x, p=_p: L.norm(x, p), _x)
    row(f"norm {_p} of rows", lambda L, F, x, p=_p: L.norm(x, p, dim=1), [[0.0, 0], [1, 1], [0, -3]])
for _p in (0.5, 1, 2, 3, INF):
    row(f"normalize {_p}", lambda L, F, x, p=_p: weighted(L, F.normalize(x, p, 1)), [[0.0, 0], [1, 1], [0, -3]])
row("distance of equal rows", lambda L, F, x, y: L.norm(x - y, dim=1), [[1.0, 2], [3, 4]], [[1.0, 2], [3, 5]])
row(
    "cosine_similarity of zeros",
    lambda L, F, x, y: F.cosine_similarity(x, y),
    *([[0.0, 0], [1, 0], [0, 0], [1, 1], [1e-200, 0]], [[0.0, 0], [0, 0], [1, 1], [1, 1], [1, 0]]),
)
row("layer_norm of equals", lambda L, F, x: weighted(L, F.layer_norm(x, (3,))), CONSTANT)
row("rms_norm of zeros", lambda L, F, x: weighted(L, F.rms_norm(x, (3,), eps=1e-6)), [[0.0, 0, 0], [1, 2, 3]])
row("group_norm of equals", lambda L, F, x: weighted(L, F.group_norm(x, 1)), [[2.0, 2], [1, 2]])
row("batch_norm of equals", lambda L, F, x: weighted(L, F.batch_norm(x, None, None, training=True)), [[2.0, 2], [2, 3]])

# One operand: poles, ends of the domain, infinities, where the exponential overflows ----------------------------

ONE = {
    "sqrt": [0.0, -0.0, INF, -1],
    "rsqrt": [0.0, INF, -1],
    "abs": [0.0, -0.0, INF, -INF],
    "log": [0.0, -0.0, INF],
    "log1p": [-1.0, 0, INF],
    "log2": [0.0, INF],
    "log10": [0.0, INF],
    "reciprocal": [0.0, -0.0, INF],
    "exp": [INF, -INF, 1000, -1000],
    "exp2": [INF, -INF, 2000, -2000],
    "expm1": [INF, -INF, 1000, -1000, 0],
    "asin": [1.0, -1, 0],
    "acos": [1.0, -1, 0],
    "atanh": [1.0, -1, 0],
    "acosh": [1.0, INF, 1e308, -1, -2, 0.5, math.nan],
    "asinh": [0.0, -0.0, INF, -INF, 1e308, -1e308],
    "atan": [INF, -INF, 0],
    "tanh": [INF, -INF, 1000],
    "sinh": [INF, 1000, -1000],
    "cosh": [INF, 1000, -1000],
    "erf": [INF, -INF, 100],
    "erfc": [INF, -INF, 100, -100],
    "sigmoid": [INF, -INF, 1000, -1000],
    "square": [0.0, INF, 1e200],
    "floor": [0.0, 0.5],
    "ceil": [0.0, 0.5],
    "round": [0.5, 1.0],
    "trunc": [0.5, -0.0],
    "sign": [0.0, -2.0],
    "frac": [0.5, 0],
    "logit": [0.0, 1, 0.5, -1, 2, INF, math.nan],
    "nan_to_num": [INF, -INF, math.nan, 1],
}
for _name, _x in ONE.items():
    row(_name, lambda L, F, x, n=_name: getattr(L, n)(x), _x)
for _exponent in (0, 0.0, 0.5, 1, 1.0, 1.5, 2, 2.0, 3, -1, -2, 4.0, 2.5):
    row(f"x ** {_exponent!r}", lambda L, F, x, n=_exponent: x**n, [0.0, -0.0, -1, INF])
for _base in (0.0, 1.0, 2.0, -1.0, 0, -0.0):
    row(f"{_base!r} ** x", lambda L, F, x, n=_base: n**x, [0.0, 1, -1, 0.5])
row("logit, eps", lambda L, F, x: L.logit(x, 1e-3), [0.0, 1, 0.5, 1e-3, 0.999])
row("where over sqrt", lambda L, F, x: L.where(x > 0, L.sqrt(L.where(x > 0, x, 1)), x), [0.0, 1, -1])
ACTIVATIONS = ["relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "leaky_relu", "elu", "selu"]
ACTIVATIONS += ["gelu", "silu", "mish", "softplus", "logsigmoid", "softsign"]
for _name in ACTIVATIONS:
    row(_name, lambda L, F, x, n=_name: getattr(F, n)(x), [0.0, -0.0, 1, -1, 3, -3, 6, 1000, -1000])
for _name in ACTIVATIONS:
    row(f"{_name} of infinities", lambda L, F, x, n=_name: getattr(F, n)(x), [INF, -INF])
for _name in ACTIVATIONS:
    # Of 32: PyTorch's scalar and vector loops differ for some of them.
    row(f"{_name} of NaN", lambda L, F, x, n=_name: getattr(F, n)(x), [math.nan] * 32)
row("gelu, tanh", lambda L, F, x: F.gelu(x, approximate="tanh"), [0.0, 1000, -1000])
row("softplus, threshold", lambda L, F, x: F.softplus(x, 2, 1), [0.5, 0.4, 0.6])
row("clamp", lambda L, F, x: L.clamp(x, -1, 1), [-1.0, 1, 0, 2, INF])
row("clamp, crossed", lambda L, F, x: L.clamp(x, 2, 1), [0.0, 1, 2, 1.5])

# Two operands: ties, zeros, infinities ---------------------------------------------------------------------------

for _name in [
    "pow",
    "atan2",
    "hypot",
    "logaddexp",
    "xlogy",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "copysign",
    "div",
    "mul",
]:
    row(_name, lambda L, F, x, y, n=_name: getattr(L, n)(x, y), *map(list, zip(*PAIRS, strict=True)))
for _name in ("remainder", "fmod"):
    row(
        f"{_name}, exact quotients and endless ones",
        lambda L, F, x, y, n=_name: getattr(L, n)(x, y),
        *([6.0, -6, 1, -1, 1, 1, 1, -1], [1.5, 1.5, -INF, INF, INF, 0, -0.0, 0]),
    )
row("remainder, quotients that round up", lambda L, F, x, y: x % y, [3.0, 6, 1e6, 1], [0.1, 0.6, 0.1, 0.001])
for _mode in ("trunc", "floor"):
    row(
        f"div, {_mode}",
        lambda L, F, x, y, n=_mode: L.div(x, y, rounding_mode=n),
        *([0.0, 1, math.nan, INF], [0.0, 0, 1, 2]),
    )
row("clamp to tensors", lambda L, F, *x: L.clamp(*x), *map(list, zip(*BOUNDED, strict=True)))
row("clamp to a lower tensor", lambda L, F, x, y: L.clamp(x, y), [0.0, math.nan, 0, 1, 2], [1.0, 0, math.nan, 1, 1])
row(
    "clamp to an upper tensor", lambda L, F, x, y: L.clamp(x, max=y), [0.0, math.nan, 0, 1, 2], [1.0, 0, math.nan, 1, 1]
)
row("remainder", lambda L, F, x, y: L.remainder(x, y), [0.0, 3.0, -3.0], [1.0, 1.5, 2.0])
row("fmod", lambda L, F, x, y: L.fmod(x, y), [0.0, 3.0, -3.0], [1.0, 1.5, 2.0])
row("maximum of NaN", lambda L, F, x, y: L.maximum(x, y), [math.nan, 1.0], [1.0, math.nan])
row("fmax of NaN", lambda L, F, x, y: L.fmax(x, y), [math.nan, 1.0], [1.0, math.nan])
row("fmin of NaN", lambda L, F, x, y: L.fmin(x, y), [math.nan, 1.0], [1.0, math.nan])
row("lerp", lambda L, F, x, y: L.lerp(x, y, 0.5), [0.0, 1.0], [0.0, 1.0])
row("lerp by infinity", lambda L, F, x, y: L.lerp(x, y, math.inf), [0.0, 1.0], [0.0, 2.0])
for _name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"):
    _pair = ([0.0, 1, 2, -1, INF, 3, math.nan, 1, math.nan, INF], [0.0, 0, 0, 0, 1, 3, 1, math.nan, math.nan, INF])
    row(_name, lambda L, F, x, y, n=_name: getattr(F, n)(x, y, reduction="none"), *_pair)
row("huber_loss, delta", lambda L, F, x, y: F.huber_loss(x, y, delta=0.5), [0.0, 0.5, -0.5, 1e-9], [0.0, 0, 0, 0])
row("smooth_l1_loss, beta 0", lambda L, F, x, y: F.smooth_l1_loss(x, y, beta=0.0), [0.0, 0.5, -0.5], [0.0, 0, 0])
row("binary_cross_entropy", lambda L, F, x, y: F.binary_cross_entropy(x, y), [0.0, 1, 0, 1, 0.5], [0.0, 1, 1, 0, 0.5])
row(
    "binary_cross_entropy_with_logits",
    lambda L, F, x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    *([0.0, 1000, -1000, 1000], [0.0, 1, 1, 0]),
)
row("kl_div", lambda L, F, x, y: F.kl_div(x, y, reduction="none"), [0.0, -1, -2], [0.0, 0.5, 0])

# Along a dimension: ties, zeros among factors, rows of infinities -------------------------------------------------

for _name in ("softmax", "log_softmax", "softmin"):
    row(_name, lambda L, F, x, n=_name: weighted(L, getattr(F, n)(x, dim=1)), SCORES)
row("logsumexp", lambda L, F, x: L.logsumexp(x, 1), SCORES)
row("prod of rows", lambda L, F, x: L.prod(x, 1), [[0.0, 2, 3], [0, 0, 3], [0, 0, 0], [1, 2, 3], [INF, 0, 1]])
row("prod", lambda L, F, x: L.prod(x), [[0.0, 2], [3, 4]])
row("prod, two infinities", lambda L, F, x: L.prod(x), [INF, INF, 1])
row("prod, two zeros", lambda L, F, x: L.prod(x), [[0.0, 2], [0, 4]])
row("cumprod", lambda L, F, x: L.cumprod(x, 1), [[0.0, 2, 3], [2, 0, 3], [0, 0, 0], [1, 2, 3]])
for _name in ("amax", "amin"):
    row(
        _name,
        lambda L, F, x, n=_name: getattr(L, n)(x, 1),
        [[1.0, 1, 0], [INF, INF, 0], [-INF, -INF, -INF], [0.0, -0.0, 0]],
    )
for _name in ("max", "min", "median"):
    row(f"{_name} of rows", lambda L, F, x, n=_name: getattr(L, n)(x, 1)[0], [[1.0, 1, 0], [INF, INF, 0], [2, 2, 2]])
for _name in ("max", "min"):
    row(_name, lambda L, F, x, n=_name: getattr(L, n)(x), [1.0, 1, 0])
    row(f"{_name} of NaN", lambda L, F, x, n=_name: getattr(L, n)(x), [math.nan, 1, math.nan])
    row(f"{_name} of rows with NaN", lambda L, F, x, n=_name: getattr(L, f"a{n}")(x, 1), [[math.nan, 1, 2], [1, 0, 0]])
row("sort", lambda L, F, x: weighted(L, L.sort(x, stable=True)[0]), [1.0, 1, 2, 0])
row("topk", lambda L, F, x: weighted(L, L.topk(x, 2)[0]), [1.0, 1, 0])
row("nansum", lambda L, F, x: L.nansum(x), [math.nan, 1.0])
row("nanmean", lambda L, F, x: L.nanmean(x), [math.nan, 1.0, 2])
SINGULAR = [[[1.0, 2], [2, 4]], [[0.0, 0], [0, 0]], [[1.0, 1], [1, 1]], [[1.0, 0], [0, 2]]]
row("det", lambda L, F, x: L.linalg.det(x), SINGULAR)
row("max_pool1d", lambda L, F, x: F.max_pool1d(x, 2), [[[1.0, 1, 0, 0]]])


def gradients(library, functional, function, numbers, run=lambda step: step):
    """The gradients of the sum of a result, as nested lists; `run` compiles the step that computes them."""

    def step(*given):
        tensors = [x.detach().requires_grad_() for x in given]
        y = function(library, functional, *tensors)
        if not y.requires_grad:
            return [library.zeros_like(x) for x in tensors]
        found = library.autograd.grad(y.sum(), tensors, allow_unused=True)
        return [library.zeros_like(x) if g is None else g for g, x in zip(found, tensors, strict=True)]

    return [x.tolist() for x in run(step)(*[library.tensor(each, dtype=library.float64) for each in numbers])]
