"""The programs of notebook 15, each written once for every library, and the stacks that run them.

A function takes the library as its first argument: `minitorch`, `jax.numpy` and `torch` have the names that it uses. A
network takes the modules `nn` and `functional`, which are the same in minitorch and PyTorch; for JAX it is written once
more, as a function of its parameters. All stacks begin with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ..conditions import version_of
from .inductor import has_compiler, inductor, torch_counts

Call = Callable[[], Any]
Arrays = list[np.ndarray[Any, Any]]


# --- functions ------------------------------------------------------------------------------------------------------


def gelu(lib: Any, x: Any) -> Any:
    """GELU in its tanh form: nine operations."""
    inner = x + 0.044715 * x * x * x
    bent = lib.tanh(0.7978845608 * inner)
    return 0.5 * x * (1.0 + bent)


def softmax(lib: Any, x: Any) -> Any:
    """Softmax over rows."""
    shifted = x - lib.amax(x, 1)[:, None]
    e = lib.exp(shifted)
    return e / e.sum(1)[:, None]


def layer_norm(lib: Any, x: Any, weight: Any, bias: Any) -> Any:
    """Layer normalization over rows."""
    centred = x - (x.sum(1) / x.shape[1])[:, None]
    variance = (centred * centred).sum(1) / x.shape[1]
    return centred / lib.sqrt(variance + 1e-5)[:, None] * weight + bias


def dense(lib: Any, x: Any, w: Any, b: Any) -> Any:
    """A layer with GELU: a matrix product and eleven operations on its result."""
    return gelu(lib, x @ w + b)


# --- networks -------------------------------------------------------------------------------------------------------


def mlp(nn: Any, functional: Any) -> Any:
    """Three linear layers."""
    return nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )  # fmt: skip


def cnn(nn: Any, functional: Any) -> Any:
    """Two convolutions, each with a ReLU and a pool, and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip


WIDTH, HEADS = 128, 4


def transformer(nn: Any, functional: Any) -> Any:
    """Two blocks of attention and a layer with GELU, and a linear layer for the mean of all places."""

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            batch, places, _ = x.shape
            heads = self.qkv(self.before(x)).reshape(batch, places, 3, HEADS, WIDTH // HEADS)
            q, k, v = (heads[:, :, part].transpose(1, 2) for part in range(3))
            mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, places, WIDTH)
            x = x + self.out(mixed)
            return x + self.down(functional.gelu(self.up(self.after(x)), approximate="tanh"))

    class Transformer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = Block(), Block(), nn.Linear(WIDTH, 10)

        def forward(self, x: Any) -> Any:
            return self.last(self.second(self.first(x)).mean(1))

    return Transformer()


def _linear(p: Any, name: str, x: Any) -> Any:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def jax_mlp(jax: Any, p: Any, x: Any) -> Any:
    """`mlp`, for JAX."""
    for name in "02":
        x = jax.nn.relu(_linear(p, name, x))
    return _linear(p, "4", x)


def jax_cnn(jax: Any, p: Any, x: Any) -> Any:
    """`cnn`, for JAX."""
    window = (1, 1, 2, 2)
    for name in "03":
        x = jax.lax.conv_general_dilated(x, p[f"{name}.weight"], (1, 1), "SAME") + p[f"{name}.bias"][:, None, None]
        x = jax.lax.reduce_window(jax.nn.relu(x), -np.inf, jax.lax.max, window, window, "VALID")
    return _linear(p, "7", x.reshape(len(x), -1))


def jax_transformer(jax: Any, p: Any, x: Any) -> Any:
    """`transformer`, for JAX."""

    def norm(name: str, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        deviation = jax.numpy.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return centred / deviation * p[f"{name}.weight"] + p[f"{name}.bias"]

    for block in ("first", "second"):
        heads = _linear(p, f"{block}.qkv", norm(f"{block}.before", x)).reshape(*x.shape[:2], 3, HEADS, WIDTH // HEADS)
        q, k, v = (heads[:, :, part] for part in range(3))
        x = x + _linear(p, f"{block}.out", jax.nn.dot_product_attention(q, k, v).reshape(x.shape))
        hidden = jax.nn.gelu(_linear(p, f"{block}.up", norm(f"{block}.after", x)))
        x = x + _linear(p, f"{block}.down", hidden)
    return _linear(p, "last", x.mean(1))


# --- all of them ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A row of the tables.

    Attributes:
        name: what it is called, with its size.
        function: for every library; of a network, what makes it.
        shapes: of the arguments; of a network, of its input.
        for_jax: the network as a function of its parameters; None for a function.
        trains: whether a call is a training step.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    for_jax: Callable[..., Any] | None = None
    trains: bool = False

    def arguments(self) -> Arrays:
        """The same numbers at every call; a training step has labels, too."""
        draw = np.random.default_rng(15)
        arrays: Arrays = [draw.standard_normal(shape).astype(np.float32) for shape in self.shapes]
        return [*arrays, draw.integers(0, 10, self.shapes[0][0])] if self.trains else arrays


def _networks() -> Iterable[Program]:
    sizes = {"MLP": (784,), "CNN": (1, 28, 28), "transformer": (32, WIDTH)}
    pairs = {"MLP": (mlp, jax_mlp), "CNN": (cnn, jax_cnn), "transformer": (transformer, jax_transformer)}
    for name, size in sizes.items():
        for trains in (False, True):
            for batch in (1, 64):
                title = f"{name}, {'training' if trains else 'inference'}, batch {batch}"
                yield Program(title, pairs[name][0], ((batch, *size),), pairs[name][1], trains)


FUNCTIONS = (
    Program("gelu, 8 million", gelu, ((8_000_000,),)),
    Program("gelu, 1,000", gelu, ((1_000,),)),
    Program("softmax, 4096 x 1024", softmax, ((4096, 1024),)),
    Program("layer norm, 4096 x 1024", layer_norm, ((4096, 1024), (1024,), (1024,))),
    Program("product and gelu, 512 x 768 x 768", dense, ((512, 768), (768, 768), (768,))),
)
NETWORKS = tuple(_networks())
PROGRAMS = {program.name: program for program in (*FUNCTIONS, *NETWORKS)}


@dataclass(frozen=True)
class Prepared:
    """A program in one of the stacks; nothing of it has been traced or compiled yet.

    Attributes:
        call: runs it, and waits for the result.
        count: the number of kernels (of an eager stack: operations that compute), and the bytes that these move.
        result: the numbers of a call's result.
    """

    call: Call
    count: Callable[[], tuple[int, int]]
    result: Callable[[], np.ndarray[Any, Any]]


def _same_numbers(program: Program, model: Any, from_numpy: Callable[[Any], Any]) -> None:
    """Give a network the parameters that all stacks begin with."""
    draw = np.random.default_rng(0)
    state = {
        name: (0.05 * draw.standard_normal(tuple(each.shape))).astype(np.float32)
        + ("before.w" in name or "after.w" in name)
        for name, each in model.state_dict().items()
    }
    model.load_state_dict({name: from_numpy(np.asarray(each, np.float32)) for name, each in state.items()})


def ours(program: Program, jit: bool = True) -> Prepared:
    """A program in this engine."""
    mt, nn, functional = (import_module(f"minitorch{part}") for part in ("", ".nn", ".nn.functional"))
    arguments = [mt.from_numpy(each) for each in program.arguments()]
    if program.for_jax is None:
        function = partial(program.function, mt)
    else:
        model = program.function(nn, functional)
        _same_numbers(program, model, mt.from_numpy)
        function = _step(mt, functional, model) if program.trains else model
    run: Any = mt.jit(function) if jit else function

    def call() -> Any:
        with mt.set_grad_enabled(program.trains):
            return run(*arguments)

    def count() -> tuple[int, int]:
        with mt.set_grad_enabled(program.trains):
            if jit:
                cost = run.cost(*arguments)
                return cost.kernels, cost.bytes
            with mt.profile() as found:
                run(*arguments)
        return found.calls, found.bytes

    return Prepared(call, count, lambda: call().detach().numpy())


def _step(lib: Any, functional: Any, model: Any, compiled: Callable[[Any], Any] = lambda function: function) -> Any:
    """A training step; what is compiled in PyTorch is forward and loss, and with them backward."""
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    loss_of = compiled(lambda x, y: functional.cross_entropy(model(x), y))

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    step.update = optimizer.step  # type: ignore[attr-defined]
    return step


def with_jax(program: Program) -> Prepared:
    """A program in JAX, compiled by XLA."""
    from minitorch_xla.backend.hlo import read

    jax = import_module("jax")
    arguments: list[Any] = [jax.numpy.asarray(each) for each in program.arguments()]
    if program.for_jax is None:
        run = jax.jit(partial(program.function, jax.numpy))
    else:
        nn, functional = (import_module(f"minitorch.nn{part}") for part in ("", ".functional"))
        model = program.function(nn, functional)
        _same_numbers(program, model, import_module("minitorch").from_numpy)
        parameters = {name: jax.numpy.asarray(each.numpy()) for name, each in model.state_dict().items()}
        network = partial(program.for_jax, jax)
        run = jax.jit(_jax_step(jax, network), donate_argnums=0) if program.trains else jax.jit(network)
        arguments = [parameters, *arguments]

    def call() -> Any:
        result = run(*arguments)
        if program.trains:
            arguments[0], result = result
        return jax.block_until_ready(result)

    def count() -> tuple[int, int]:
        compiled = run.lower(*arguments).compile()
        return len(read(compiled.as_text())), int(compiled.cost_analysis()["bytes accessed"])

    return Prepared(call, count, lambda: np.asarray(call()))


def _jax_step(jax: Any, network: Callable[..., Any]) -> Callable[..., Any]:
    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        logits = jax.nn.log_softmax(network(parameters, x))
        return -jax.numpy.take_along_axis(logits, y[:, None], 1).mean()

    def step(parameters: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        return jax.tree.map(lambda old, by: old - 0.01 * by, parameters, gradients), loss

    return step


def with_torch(program: Program, compiled: bool = False) -> Prepared:
    """A program in PyTorch."""
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    arguments = [torch.from_numpy(each) for each in program.arguments()]
    prepare = torch.compile if compiled else lambda function: function
    updated = None
    if program.for_jax is None:
        run = prepare(partial(program.function, torch))
    else:
        model = program.function(torch.nn, torch.nn.functional)
        _same_numbers(program, model, torch.from_numpy)
        run = _step(torch, torch.nn.functional, model, prepare) if program.trains else prepare(model)
        updated = run.update if program.trains else None

    def call() -> Any:
        with torch.set_grad_enabled(program.trains):
            return run(*arguments)

    def count() -> tuple[int, int]:
        if not compiled:
            return torch_counts(torch, call)
        found = inductor(torch, call)
        kernels, moved = torch_counts(torch, updated) if updated else (0, 0)  # the update is not compiled
        return len(found.kernels) + kernels, found.bytes + moved

    return Prepared(call, count, lambda: call().detach().numpy())


STACKS: dict[str, tuple[str, Callable[[Program], Prepared]]] = {
    "ours, eager": ("numpy", partial(ours, jit=False)),
    "ours, jit": ("numpy", ours),
    "jax.jit": ("jax", with_jax),
    "torch, eager": ("torch", with_torch),
    "torch.compile": ("torch", partial(with_torch, compiled=True)),
}  # by name: the package that a stack needs, and how it prepares a program


def installed() -> list[str]:
    """The stacks that can run here. `torch.compile` needs a compiler for C++, too."""
    found = [name for name, (package, _) in STACKS.items() if version_of(package)]
    return [name for name in found if name != "torch.compile" or has_compiler()]
