"""The same vocabulary for every library, so that a case is written once: `lib.exp`, `lib.layer_norm`, `lib.vjp`.

Each method is what a user of that library would write: the library's own function where it has one, the formula where
it has not. A library is imported when its class is made, and in this file alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from . import by_hand

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

EPS = 1e-5  # of layer_norm and rms_norm
HEADS = 8  # of attention
RATE, BETA1, BETA2, ADAM_EPS = 1e-3, 0.9, 0.999, 1e-8
# Of training steps: so large that rounding errors do not decide which way a parameter moves whose gradient is about 0.
TRAINING_EPS = 1e-3


class Library:
    """What all have in common. Subclasses have `exp`, `tanh`, `maximum` and the methods below that are not here."""

    version = ""
    tolerance = 0.0  # of `cases.deviation`, where numbers are rounded on purpose; 0 for the tolerance of the case
    prepared: Callable[[], Any] | None = None  # the call of a case that is to be measured in turns
    form = ""  # of what was prepared last, where a library has several ways to the same

    def array(self, x: Array) -> Any:
        """The library's own array."""
        return x

    def numpy(self, x: Any) -> Array:
        """The NumPy array of a result."""
        return np.asarray(x)

    def wait(self, result: Any) -> None:
        """Return when a result has been computed."""

    def compile(self, function: Function) -> Function:
        """The function, compiled if that is what this contender does."""
        return function

    def supports(self, program: Function) -> bool:
        """Whether a program can be run at all."""
        return True

    def instructions(self) -> str:
        """What the library says about the instructions that it uses; empty if it does not."""
        return ""

    def products(self, size: int) -> Iterable[tuple[str, Callable[[], Any]]]:
        """Products of two square matrices that `cases` does not have, with the number format, to be probed."""
        return ()

    def to_probe(self) -> Library:
        """What multiplies matrices as this does, in float32: how fast that is tells its instructions."""
        return self


# --- NumPy, which is also the reference -------------------------------------------------------------------------------


def _standardized(x: Array) -> tuple[Array, Array]:
    centered = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((centered * centered).mean(-1, keepdims=True) + EPS)
    return centered * scale, scale


def _unit_mean_square(x: Array) -> tuple[Array, Array]:
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)
    return x * scale, scale


def _softmax(x: Array, axis: int = -1) -> Array:
    shifted = np.exp(x - x.max(axis, keepdims=True))
    return shifted / shifted.sum(axis, keepdims=True)


def _log_softmax(x: Array, axis: int = -1) -> Array:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _softmax_gradient(x: Array, g: Array) -> tuple[Array, ...]:
    y = _softmax(x)
    return (y * (g - (y * g).sum(-1, keepdims=True)),)


def _log_softmax_gradient(x: Array, g: Array) -> tuple[Array, ...]:
    return (g - _softmax(x) * g.sum(-1, keepdims=True),)


def _layer_norm_gradient(x: Array, weight: Array, bias: Array, g: Array) -> tuple[Array, ...]:
    y, scale = _standardized(x)
    h = g * weight
    dx = scale * (h - h.mean(-1, keepdims=True) - y * (h * y).mean(-1, keepdims=True))
    return dx, (g * y).sum(0), g.sum(0)


def _rms_norm_gradient(x: Array, weight: Array, g: Array) -> tuple[Array, ...]:
    y, scale = _unit_mean_square(x)
    h = g * weight
    return scale * (h - y * (h * y).mean(-1, keepdims=True)), (g * y).sum(0)


def _attention_weights(q: Array, k: Array, causal: bool) -> Array:
    scores = q @ k.T / math.sqrt(q.shape[-1])
    return _softmax(np.where(np.tri(*scores.shape, dtype=np.bool_), scores, -math.inf) if causal else scores)


def _by_head(function: Callable[..., tuple[Array, ...]], *operands: Array) -> tuple[Array, ...]:
    """A function of matrices, for each head: all scores at once would take more memory than there may be."""
    heads = [function(*matrices) for matrices in zip(*(x.reshape(-1, *x.shape[-2:]) for x in operands), strict=True)]
    batch = operands[0].shape[:-2]
    return tuple(np.stack(part).reshape(*batch, *part[0].shape) for part in zip(*heads, strict=True))


def _attention_gradient(q: Array, k: Array, v: Array, g: Array, *, causal: bool) -> tuple[Array, ...]:
    y = _attention_weights(q, k, causal)
    h = g @ v.T
    scores = y * (h - (h * y).sum(-1, keepdims=True))
    scale = 1 / math.sqrt(q.shape[-1])
    return scores @ k * scale, scores.T @ q * scale, y.T @ g


def _cross_entropy_gradient(logits: Array, target: Array) -> Array:
    gradient = _softmax(logits)
    gradient[np.arange(len(target)), target] -= 1
    return gradient / len(target)


class NumPy(Library):
    """NumPy has no derivatives: here they are written by hand, for the functions of the cases, by name."""

    exp, tanh, maximum = staticmethod(np.exp), staticmethod(np.tanh), staticmethod(np.maximum)
    sum, mean, var = staticmethod(np.sum), staticmethod(np.mean), staticmethod(np.var)
    softmax, log_softmax = staticmethod(_softmax), staticmethod(_log_softmax)
    version = np.__version__

    convolution, max_pool = staticmethod(by_hand.convolution), staticmethod(by_hand.max_pool)

    gradients: dict[str, Callable[..., tuple[Array, ...]]] = {  # noqa: RUF012
        "softmax": _softmax_gradient,
        "log_softmax": _log_softmax_gradient,
        "layer_norm": _layer_norm_gradient,
        "rms_norm": _rms_norm_gradient,
        "convolution": by_hand.convolution_gradient,
        "attention": lambda q, k, v, g: _by_head(partial(_attention_gradient, causal=False), q, k, v, g),
        "causal_attention": lambda q, k, v, g: _by_head(partial(_attention_gradient, causal=True), q, k, v, g),
    }

    def instructions(self) -> str:
        features = np.show_config(mode="dicts")["SIMD Extensions"]
        used = " ".join([*features.get("baseline", []), *features.get("found", [])])
        try:
            from threadpoolctl import threadpool_info
        except ImportError:
            return used
        return f"{used}, BLAS for {' '.join(str(row.get('architecture')) for row in threadpool_info())}"

    def inference(self, model: Any, parameters: list[Array], x: Array) -> Callable[[], Array]:
        """A call of a model of `benchmarks.inference`."""
        return lambda: model.program(self, parameters, x)

    def normalized_convolution(self, x: Array, stride: int, weight: Array, bias: Array, *norm: Array) -> Array:
        """Convolution, batch normalization in evaluation, and ReLU: folded, and of all places."""
        gain, shift, mean, variance = norm
        scale = gain / np.sqrt(variance + EPS)
        every = self.convolution(x, weight * scale[:, None, None, None], (bias - mean) * scale + shift)
        return every[:, :, ::stride, ::stride]

    def layer_norm(self, x: Array, weight: Array, bias: Array) -> Array:
        return _standardized(x)[0] * weight + bias

    def rms_norm(self, x: Array, weight: Array) -> Array:
        return _unit_mean_square(x)[0] * weight

    def cross_entropy(self, logits: Array, target: Array) -> Array:
        return -_log_softmax(logits)[np.arange(len(target)), target].mean()

    def embedding(self, indices: Array, table: Array) -> Array:
        return table[indices]

    def attention(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        return _by_head(lambda q, k, v: (_attention_weights(q, k, causal) @ v,), q, k, v)[0]

    def vjp(self, function: Function, primals: Sequence[Array], cotangent: Array) -> tuple[Array, ...]:
        return self.gradients[function.__name__](*primals, cotangent)

    def value_and_grad(self, function: Function, x: Array, *rest: Array) -> tuple[Array, Array]:
        assert function.__name__ == "cross_entropy", function
        return function(self, x, *rest), _cross_entropy_gradient(x, *rest)

    def adam(self, parameters: list[Array], gradients: list[Array]) -> Callable[[], list[Array]]:
        update = self._adam(parameters, ADAM_EPS)

        def step() -> list[Array]:
            update(gradients)
            return parameters

        return step

    def training_step(
        self, loss: Function, optimizer: str, parameters: list[Array], x: Array, target: Array
    ) -> Callable[[], list[Array]]:
        more = {"heads": HEADS, "eps": EPS} if loss.__name__ == "block_loss" else {}
        update = self._adam(parameters, TRAINING_EPS) if optimizer == "adam" else self._sgd(parameters)

        def step() -> list[Array]:
            value, gradients = getattr(by_hand, loss.__name__)(parameters, x, target, **more)
            update(gradients)
            return [np.asarray(value), *parameters]

        return step

    def _sgd(self, parameters: list[Array]) -> Callable[[list[Array]], None]:
        def update(gradients: list[Array]) -> None:
            for p, g in zip(parameters, gradients, strict=True):
                p -= RATE * g

        return update

    def _adam(self, parameters: list[Array], eps: float) -> Callable[[list[Array]], None]:
        means = [np.zeros_like(p) for p in parameters]
        squares = [np.zeros_like(p) for p in parameters]
        steps = 0

        def update(gradients: list[Array]) -> None:
            nonlocal steps
            steps += 1
            rate, correction = RATE / (1 - BETA1**steps), math.sqrt(1 - BETA2**steps)
            for p, g, m, s in zip(parameters, gradients, means, squares, strict=True):
                m *= BETA1
                m += (1 - BETA1) * g
                s *= BETA2
                s += (1 - BETA2) * (g * g)
                p -= rate * m / (np.sqrt(s) / correction + eps)

        return update


def _torch_like_step(
    library: Library, optim: Any, loss: Function, optimizer: str, parameters: list[Any], x: Any, target: Any
) -> Callable[[], list[Any]]:
    """A training step as users of PyTorch write it."""
    for p in parameters:
        p.requires_grad_()
    if optimizer == "adam":
        optimizing = optim.Adam(parameters, RATE, (BETA1, BETA2), TRAINING_EPS)
    else:
        optimizing = optim.SGD(parameters, RATE)

    def step(x: Any, target: Any) -> Any:
        optimizing.zero_grad()
        value = loss(library, parameters, x, target)
        value.backward()
        optimizing.step()
        return value.detach()

    compiled = library.compile(step)
    return lambda: [compiled(x, target), *parameters]


# --- minitorch --------------------------------------------------------------------------------------------------------


class Minitorch(Library):
    """minitorch, eager or compiled by one of its backends."""

    def __init__(self, backend: str | None = None) -> None:
        import minitorch as mt

        self.mt, self.backend, self.version = mt, backend, mt.__version__
        self.exp, self.tanh, self.maximum = mt.exp, mt.tanh, mt.maximum
        self.sum, self.mean, self.var = mt.sum, mt.mean, partial(mt.var, correction=0)
        self.softmax, self.log_softmax = mt.softmax, mt.log_softmax
        self.cross_entropy, self.embedding = mt.nn.functional.cross_entropy, mt.nn.functional.embedding

    def array(self, x: Array) -> Any:
        return self.mt.tensor(x)

    def numpy(self, x: Any) -> Array:
        return x.detach().numpy()

    def compile(self, function: Function) -> Function:
        return self.mt.jit(function, backend=self.backend) if self.backend else function

    def instructions(self) -> str:
        from minitorch.compiler.codegen.host import host

        return f"vectors of {host().vector_bytes} bytes"

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.mt.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)

    def rms_norm(self, x: Any, weight: Any) -> Any:
        return self.mt.nn.functional.rms_norm(x, x.shape[-1:], weight, EPS)

    def attention(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
        return self.mt.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def vjp(self, function: Function, primals: Sequence[Any], cotangent: Any) -> Any:
        _, pullback = self.mt.vjp(partial(function, self), *primals)
        return pullback(cotangent)

    def value_and_grad(self, function: Function, x: Any, *rest: Any) -> Any:
        return self.mt.value_and_grad(partial(function, self))(x, *rest)

    def adam(self, parameters: list[Any], gradients: list[Any]) -> Callable[[], list[Any]]:
        for p, g in zip(parameters, gradients, strict=True):
            p.requires_grad_().grad = g
        optimizer = self.mt.optim.Adam(parameters, RATE, (BETA1, BETA2), ADAM_EPS)
        step = self.compile(optimizer.step)

        def run() -> list[Any]:
            step()
            return parameters

        return run

    def training_step(
        self, loss: Function, optimizer: str, parameters: list[Any], x: Any, target: Any
    ) -> Callable[[], list[Any]]:
        return _torch_like_step(self, self.mt.optim, loss, optimizer, parameters, x, target)

    def convolution(self, x: Any, weight: Any, bias: Any) -> Any:
        size, groups = weight.shape[-1], x.shape[1] // weight.shape[1]
        return self.mt.nn.functional.conv2d(x, weight, bias, padding=size // 2, groups=groups).relu()

    def max_pool(self, x: Any) -> Any:
        return self.mt.nn.functional.max_pool2d(x, 2)


# --- JAX --------------------------------------------------------------------------------------------------------------


class JAX(Library):
    """JAX on the CPU, every program under `jax.jit`, every result waited for."""

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp, self.version = jax, jnp, jax.__version__
        self.exp, self.tanh, self.maximum = jnp.exp, jnp.tanh, jnp.maximum
        self.sum, self.mean, self.var = jnp.sum, jnp.mean, jnp.var
        self.softmax, self.log_softmax = jax.nn.softmax, jax.nn.log_softmax
        self.wait, self.compile = jax.block_until_ready, jax.jit  # type: ignore[method-assign, assignment]

    def array(self, x: Array) -> Any:
        return self.jnp.array(x, self.jnp.int32 if x.dtype == np.int64 else x.dtype)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered * centered).mean(-1, keepdims=True)
        return centered * self.jax.lax.rsqrt(variance + EPS) * weight + bias

    def rms_norm(self, x: Any, weight: Any) -> Any:
        return x * self.jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPS) * weight

    def cross_entropy(self, logits: Any, target: Any) -> Any:
        chosen = self.jnp.take_along_axis(self.log_softmax(logits), target[:, None], axis=-1)
        return -chosen.mean()

    def embedding(self, indices: Any, table: Any) -> Any:
        return table[indices]

    def attention(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
        """JAX's own function wants the heads behind the length, as (batch, length, heads, features)."""
        q, k, v = (self.jnp.swapaxes(x, -2, -3) for x in (q, k, v))
        return self.jnp.swapaxes(self.jax.nn.dot_product_attention(q, k, v, is_causal=causal), -2, -3)

    def vjp(self, function: Function, primals: Sequence[Any], cotangent: Any) -> Any:
        _, pullback = self.jax.vjp(partial(function, self), *primals)
        return pullback(cotangent)

    def value_and_grad(self, function: Function, x: Any, *rest: Any) -> Any:
        return self.jax.value_and_grad(partial(function, self))(x, *rest)

    def adam(self, parameters: list[Any], gradients: list[Any]) -> Callable[[], list[Any]]:
        jnp = self.jnp

        step = self.jax.jit(partial(self._adam, eps=ADAM_EPS), donate_argnums=0)
        zeros = [[jnp.zeros_like(p) for p in parameters] for _ in range(2)]
        state: Any = (jnp.zeros(()), parameters, *zeros)

        def run() -> list[Any]:
            nonlocal state
            state = step(state, gradients)
            return state[1]

        return run

    def _adam(self, state: Any, gradients: list[Any], eps: float) -> Any:
        jnp = self.jnp
        steps = state[0] + 1
        rate, correction = RATE / (1 - BETA1**steps), jnp.sqrt(1 - BETA2**steps)
        new: Any = (steps, [], [], [])
        for p, m, s, g in zip(*state[1:], gradients, strict=True):
            m = BETA1 * m + (1 - BETA1) * g
            s = BETA2 * s + (1 - BETA2) * (g * g)
            for values, value in zip(new[1:], (p - rate * m / (jnp.sqrt(s) / correction + eps), m, s), strict=True):
                values.append(value)
        return new

    def _sgd(self, state: Any, gradients: list[Any]) -> Any:
        return state[0], [p - RATE * g for p, g in zip(state[1], gradients, strict=True)]

    def training_step(
        self, loss: Function, optimizer: str, parameters: list[Any], x: Any, target: Any
    ) -> Callable[[], list[Any]]:
        jnp = self.jnp
        update = partial(self._adam, eps=TRAINING_EPS) if optimizer == "adam" else self._sgd
        zeros = [[jnp.zeros_like(p) for p in parameters] for _ in range(2 if optimizer == "adam" else 0)]
        state: Any = (jnp.zeros(()), parameters, *zeros)

        @partial(self.jax.jit, donate_argnums=0)
        def step(state: Any, x: Any, target: Any) -> Any:
            value, gradients = self.jax.value_and_grad(partial(loss, self))(state[1], x, target)
            return value, update(state, gradients)

        def run() -> list[Any]:
            nonlocal state
            value, state = step(state, x, target)
            return [value, *state[1]]

        return run

    def convolution(self, x: Any, weight: Any, bias: Any) -> Any:
        groups = x.shape[1] // weight.shape[1]
        y = self.jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", feature_group_count=groups)
        return self.jax.nn.relu(y + bias[:, None, None])

    def max_pool(self, x: Any) -> Any:
        window = (1, 1, 2, 2)
        return self.jax.lax.reduce_window(x, -self.jnp.inf, self.jax.lax.max, window, window, "VALID")


# --- PyTorch ----------------------------------------------------------------------------------------------------------


class Torch(Library):
    """PyTorch with as many threads as it likes, eager or under `torch.compile`."""

    def __init__(self, compiled: bool = False) -> None:
        import torch

        self.torch, self.compiled, self.version = torch, compiled, torch.__version__
        self.exp, self.tanh, self.maximum = torch.exp, torch.tanh, torch.maximum
        self.sum, self.mean, self.var = torch.sum, torch.mean, partial(torch.var, correction=0)
        self.softmax, self.log_softmax = torch.softmax, torch.log_softmax
        self.cross_entropy, self.embedding = torch.nn.functional.cross_entropy, torch.nn.functional.embedding

    def array(self, x: Array) -> Any:
        return self.torch.tensor(x)

    def numpy(self, x: Any) -> Array:
        return x.detach().numpy()

    def instructions(self) -> str:
        return str(self.torch.backends.cpu.get_cpu_capability())

    def compile(self, function: Function) -> Function:
        if not self.compiled:
            return function
        self.torch.compiler.reset()
        return self.torch.compile(function, dynamic=False)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)

    def rms_norm(self, x: Any, weight: Any) -> Any:
        return self.torch.nn.functional.rms_norm(x, x.shape[-1:], weight, EPS)

    def attention(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
        return self.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def vjp(self, function: Function, primals: Sequence[Any], cotangent: Any) -> Any:
        pullback = self.torch.func.vjp(partial(function, self), *primals)[1]
        return pullback(cotangent)

    def value_and_grad(self, function: Function, x: Any, *rest: Any) -> Any:
        gradient, value = self.torch.func.grad_and_value(partial(function, self))(x, *rest)
        return value, gradient

    def adam(self, parameters: list[Any], gradients: list[Any]) -> Callable[[], list[Any]]:
        for p, g in zip(parameters, gradients, strict=True):
            p.requires_grad_().grad = g
        optimizer = self.torch.optim.Adam(parameters, RATE, (BETA1, BETA2), ADAM_EPS)
        step = self.compile(optimizer.step)

        def run() -> list[Any]:
            step()
            return parameters

        return run

    def training_step(
        self, loss: Function, optimizer: str, parameters: list[Any], x: Any, target: Any
    ) -> Callable[[], list[Any]]:
        return _torch_like_step(self, self.torch.optim, loss, optimizer, parameters, x, target)

    def convolution(self, x: Any, weight: Any, bias: Any) -> Any:
        size, groups = weight.shape[-1], x.shape[1] // weight.shape[1]
        return self.torch.nn.functional.conv2d(x, weight, bias, padding=size // 2, groups=groups).relu()

    def max_pool(self, x: Any) -> Any:
        return self.torch.nn.functional.max_pool2d(x, 2)


# --- numexpr ----------------------------------------------------------------------------------------------------------

# A Python float in an expression would make numexpr compute in float64: constants are float32 variables.
EXPRESSIONS: dict[str, tuple[str, dict[str, float]]] = {
    "gelu": (
        "half * x * (one + tanh(a * (x + b * x * x * x)))",
        {"half": 0.5, "one": 1.0, "a": 0.7978845608028654, "b": 0.044715},
    ),
}


class NumExpr(Library):
    """numexpr, for the programs that are one expression: by name, with the argument `x`."""

    def __init__(self) -> None:
        import numexpr

        self.numexpr, self.version = numexpr, numexpr.__version__

    def supports(self, program: Function) -> bool:
        return program.__name__ in EXPRESSIONS

    def compile(self, function: Any) -> Function:
        text, constants = EXPRESSIONS[function.func.__name__]
        variables = {name: np.float32(value) for name, value in constants.items()}
        return lambda x: self.numexpr.evaluate(text, {"x": x, **variables})
