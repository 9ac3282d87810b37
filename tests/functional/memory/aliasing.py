"""Which results share memory with an argument: expressions that PyTorch and we understand, and what PyTorch does.

``python -m tests.functional.memory.aliasing`` records `aliasing.json` with the installed PyTorch. For each
expression and argument it has a word with a letter for each tensor among the results: is the argument another one
after `change`?
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_suffix(".json")

WRITTEN, APART, REFUSED = "w", "-", "!"  # the write is seen in the argument; it is not; there is an error
NOTHING, NOT_TAKEN = "0", "?"  # words: there are no tensors among the results; such an argument is not taken

# `x` is the argument, `L` the library, `F` its functions for networks.
EXPRESSIONS = """
x.roll(0); x.roll(0, 0); x.roll(4, 0); L.roll(x, (0, 0), (0, 1)); x.roll(1, 0); L.diag(x); L.diag(x, 1); x.diagonal()
x.diagonal(1); x.diagonal(-1); x.diagonal(0, 1, 0); x.diagonal(0, -1, -2); x[:2, :2].diagonal(); x.t().diagonal()
x[::2].diagonal(1); x[:, 1:].diagonal(-1); L.diag_embed(x); L.trace(x); x.min(0); x.max(0); x.min(-1)
x.max(-1, keepdim=True); x.min(); x.max(); x.amax(0); x.amin(0); x.amax(()); L.aminmax(x); x.sum(()); x.sum(0)
x.sum(-1, keepdim=True); x.sum(); x.mean(-1); L.mean(x, ()); x.prod(0); x.argmax(0); x.argmin(); x.cumsum(0)
x.cumsum(-1); x.cumprod(0); x.logsumexp(0); x.median(); x.median(0); x.sort(0); x.topk(1, 0); x.argsort(0); x.var(0)
x.std(0); x.norm(); x.all(0); x.any(0); L.count_nonzero(x, 0); L.var_mean(x, 0); x.repeat(1); x.repeat(1, 1)
x.repeat(1, 1, 1); x.repeat(2, 1); x.tile(1); x.tile((1, 1)); x.tile(()); x.repeat_interleave(1)
x.repeat_interleave(1, 0); x.repeat_interleave(2, 0); x.repeat_interleave(L.tensor([1]), 0); x.flip([]); x.flip(-1)
x.fliplr(); x.flipud(); L.cat([x]); L.cat([x], -1); L.cat([x, x[:0]]); L.stack([x]); L.hstack([x]); L.vstack([x])
L.concat([x]); L.row_stack([x]); F.pad(x, (0, 0)); F.pad(x, (0, 0, 0, 0)); F.pad(x, (0, -1)); F.pad(x, (-1, 0))
F.pad(x, (1, -1)); x.clamp(0, 100); x.clip(0, 100); x.clamp(min=-1); x.clone(); x.contiguous(); x.t().contiguous()
x[::2].contiguous(); x.detach(); x.detach().detach(); x.float(); x.double(); x.to(L.float32); x.to("cpu")
x.to(L.float32, copy=True); x.to(x); x.type(L.float32); x.type_as(x); x.cpu(); x.half().float(); x.bool(); x.long()
x.view(L.int32); x.view(x.dtype); x.expand(x.shape); x.expand(-1, -1); x.expand(2, *x.shape); x.expand(1, *x.shape)
x.expand_as(x); x.view_as(x); L.broadcast_to(x, x.shape); L.broadcast_tensors(x, x)
L.broadcast_tensors(x, L.ones(2, 1, 1)); x.view(x.shape); x.view(-1); x.reshape(x.shape); x.reshape(-1)
x.reshape_as(x); x.t().reshape(-1); x.flatten(); x.t().flatten(); x.flatten(0, 0); x.flatten(-1); x.ravel()
x.t().ravel(); x.squeeze(); x.squeeze(0); x.unsqueeze(0); x.unflatten(-1, (-1,)); x.unflatten(0, (1, -1))
x.transpose(0, 0); x.transpose(0, -1); x.permute(0, 1); x.permute(0); x.movedim(-1, 0); x.swapaxes(0, 0)
x.swapdims(0, -1); x.T; x.t(); x.mT.mT; L.atleast_1d(x); L.atleast_2d(x); L.atleast_3d(x)
L.meshgrid(x.reshape(-1), indexing="ij"); L.meshgrid(x.reshape(-1), x.reshape(-1), indexing="ij")
L.meshgrid(x.reshape(-1), x.reshape(-1), indexing="xy"); x.unbind(); x.unbind(-1); x.chunk(1); x.chunk(2)
L.chunk(x, 2, -1); x.split(1); x.split(100); x.tensor_split(1); x.narrow(0, 0, 1); x.select(0, 0); x[:]; x[...]
x[None]; x[0]; x[()]; x[..., 0]; x[::2]; x[-1:]; x[:, None]; x[L.tensor(0)]; x[L.tensor([0])]; x[[0]]; x[True]
x[x > -5]; x.index_select(0, L.tensor([0])); x.masked_select(x > -9); x.gather(0, L.zeros(x.shape, dtype=L.int64))
L.take(x, L.tensor([0])); x.take_along_dim(L.zeros(x.shape, dtype=L.int64), 0); x.unfold(-1, 1, 1); x.unfold(-1, 2, 1)
x.unfold(-1, 2, 2); x.unfold(0, x.shape[0], 1); x.unfold(0, 1, 2); L.where(x > -9, x, x); L.where(x > -9, x, 0)
x.masked_fill(x < -9, 0); x.tril(); x.triu(); x.tril(9); x.triu(-9); x.index_add(0, L.zeros(0, dtype=L.int64), x[:0])
x.index_copy(0, L.zeros(0, dtype=L.int64), x[:0]); +x; L.positive(x); x * 1; x + 0; x / 1; x**1; L.abs(x)
x.neg().neg(); L.maximum(x, x); L.minimum(x, x); L.fmax(x, x); L.nan_to_num(x); L.lerp(x, x, 0.5); x.round()
x.floor(); x.sign(); L.add(x, 0); L.addcmul(x, x, x, value=0); x.pow(1); x.fmod(1e9); x.remainder(1e9)
L.copysign(x, x); L.hypot(x, x); L.floor_divide(x, 1); L.square(x); L.zeros_like(x); L.ones_like(x); L.full_like(x, 1)
L.tensor(x); L.as_tensor(x); L.from_numpy(x.numpy()); L.from_dlpack(x); F.dropout(x, 0.0)
F.dropout(x, 0.5, training=False); F.dropout(x, 0.0, training=True); F.relu(x); F.hardtanh(x, -9, 99)
F.leaky_relu(x, 1.0); F.elu(x); F.softplus(x); F.softmax(x, 0); x.softmax(0); x.log_softmax(0); F.normalize(x, dim=0)
F.gelu(x); F.silu(x); F.mse_loss(x, x, reduction="none"); F.l1_loss(x, x, reduction="none"); F.layer_norm(x, x.shape)
F.avg_pool2d(x[None, None], 1); F.max_pool2d(x[None, None], 1); F.linear(x, L.eye(4)); x @ L.eye(4); x.mm(L.eye(4))
L.nn.Identity()(x); L.nn.Flatten()(x); L.nn.Flatten()(x[None]); L.nn.Flatten(0)(x); L.nn.Unflatten(0, (1, -1))(x)
L.nn.Dropout(0.0)(x); L.nn.Dropout(0.5).eval()(x); L.nn.Sequential()(x); L.nn.Dropout(0.0).train()(x)
L.einsum("ij->ij", x); L.einsum("ij->ji", x); L.einsum("i->i", x); L.einsum("ij->i", x); L.einsum("ii->i", x[:3, :3])
L.einsum("...->...", x); L.outer(x, x); L.kron(x, L.ones(1, 1)); L.dot(x, x); L.unique(x); L.nonzero(x); L.argwhere(x)
x.mul_(1); x.add_(x); x.copy_(x); x.fill_(3); x.clamp_(0, 100); x.squeeze().mul_(1); x.relu(); x.sigmoid(); x.exp()
__import__("copy").copy(x); __import__("copy").deepcopy(x); x.data; x.new_zeros(2)
"""

ARGUMENTS: dict[str, Callable[[Callable[[tuple[int, ...]], Any]], Any]] = {
    "matrix": lambda make: make((3, 4)),
    "transposed": lambda make: make((4, 3)).t(),
    "square": lambda make: make((4, 4)),
    "vector": lambda make: make((4,)),
    "one row": lambda make: make((1, 4)),
    "one column": lambda make: make((3, 1)),
    "one by one": lambda make: make((1, 1)),
    "one": lambda make: make((1,)),
    "number": lambda make: make(()),
    "stepped": lambda make: make((3, 8))[:, ::2],
    "sliced": lambda make: make((3, 6))[:, 1:5],
    "one between": lambda make: make((2, 1, 4)),
    "exchanged": lambda make: make((2, 3, 4)).transpose(0, 2),
}


def expressions() -> Iterator[str]:
    """All of them, one by one."""
    for line in EXPRESSIONS.strip().splitlines():
        yield from (each.strip() for each in line.split(";") if each.strip())


def tensors(result: Any, kind: type) -> list[Any]:
    """The tensors in a result."""
    if isinstance(result, (tuple, list)):
        return [tensor for each in result for tensor in tensors(each, kind)]
    return [result] if isinstance(result, kind) else []


def change(result: Any) -> None:
    """Write other numbers into a tensor of any type."""
    result.copy_(result.logical_not())


def letters(x: Callable[[], Any], function: Callable[[Any], list[Any]], errors: tuple[type[Exception], ...]) -> str:
    """What a write to each of the results of a function does.

    Args:
        x: makes the argument.
        function: gives the results.
        errors: those of a write that is refused.
    """
    found = ""
    for number in range(len(function(x()))):
        argument = x()
        results = function(argument)
        before = argument.tolist()
        try:
            change(results[number])
            found += APART if argument.tolist() == before else WRITTEN
        except errors:
            found += REFUSED
    return found


def with_torch(expression: str, name: str) -> str:
    """What PyTorch does."""
    import torch

    def argument() -> Any:
        return ARGUMENTS[name](lambda shape: (torch.arange(float(torch.Size(shape).numel())) + 1).reshape(shape))

    def function(x: Any) -> list[Any]:
        return tensors(eval(expression, {"x": x, "L": torch, "F": torch.nn.functional}), torch.Tensor)

    try:
        return letters(argument, function, (RuntimeError,)) or NOTHING
    except (RuntimeError, IndexError, TypeError, ValueError):
        return NOT_TAKEN


def recorded() -> Iterator[tuple[str, dict[str, str]]]:
    """Each expression, and what was recorded for the arguments that PyTorch takes."""
    for expression, words in json.loads(RECORDED.read_text(encoding="utf-8")).items():
        yield (
            expression,
            {
                name: word
                for name, word in zip(ARGUMENTS, words.split(), strict=True)
                if word not in (NOTHING, NOT_TAKEN)
            },
        )


if __name__ == "__main__":
    found = {each: " ".join(with_torch(each, name) for name in ARGUMENTS) for each in expressions()}
    RECORDED.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
