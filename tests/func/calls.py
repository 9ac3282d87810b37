"""Calls of `torch.func` that work with both libraries: a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

DIGITS = 10  # of each number in the record, in float64


def calls(t: Any) -> dict[str, Callable[[], Any]]:
    """The calls, of a library that is PyTorch or has its names."""
    f, random = t.func, np.random.default_rng(0)
    a, b, w, c = (t.tensor(random.standard_normal(shape)) for shape in [(4, 3), (4, 3), (5, 3), (3, 4, 2)])

    def loss(w: Any, x: Any, y: Any) -> Any:
        return ((w @ x - y) ** 2).sum()

    def product(w: Any, x: Any) -> Any:
        return (w @ x).sin()

    def of_dict(d: Any) -> Any:
        return {"out": (d["w"] @ d["x"]).sin(), "sum": d["x"].sum()}

    def written(x: Any) -> Any:
        y = t.zeros_like(x)
        y[0] = x[1]
        return y.mul_(3)

    def cube(x: Any) -> Any:
        return (x**3).sum()

    def rows_of_jacobian(x: Any) -> Any:
        x = x.clone().requires_grad_()
        y = x.sin()
        return f.vmap(lambda v: t.autograd.grad(y, x, v, retain_graph=True)[0])(t.eye(3, dtype=t.float64))

    return {
        "vmap(dot)": lambda: f.vmap(t.dot)(a, b),
        "in_dims=1": lambda: f.vmap(lambda x: x * 2, in_dims=1)(a),
        "negative dims": lambda: f.vmap(lambda x: x * 2, in_dims=-1, out_dims=-2)(c),
        "out_dims of a tuple": lambda: f.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(c),
        "one out_dim": lambda: f.vmap(lambda x: (x, {"a": x.sum(0)}), out_dims=1)(c),
        "shared matrix": lambda: f.vmap(lambda x, w: w @ x, in_dims=(0, None))(a, w),
        "nested in_dims": lambda: f.vmap(lambda d, y: d["a"] * y[0] + y[1], ({"a": 0}, [0, None]))({"a": a}, [b, w[0]]),
        "out_dims=None": lambda: f.vmap(lambda x: (x, w, 3), out_dims=(0, None, None))(a),
        "shared result": lambda: f.vmap(lambda x: w)(a),
        "keyword": lambda: f.vmap(lambda x, y=None: x * y)(a, y=w[0]),
        "chunks": lambda: f.vmap(lambda x: x.sum(), chunk_size=3)(a),
        "writes": lambda: f.vmap(written)(a),
        "gradient with aux": lambda: f.grad(lambda x: (cube(x), x * 2), has_aux=True)(a),
        "grad_and_value": lambda: f.grad_and_value(lambda x, y: ((x * y).sum(), {"k": x}), (0, 1), has_aux=True)(a, b),
        "by sample": lambda: f.vmap(f.grad(loss), in_dims=(None, 0, None))(w, a, w[:, 0]),
        "vjp": lambda: f.vjp(lambda x, y: (x * y, x.sum()), a, b)[1]((a, a[0, 0])),
        "vjp with aux": lambda: f.vjp(lambda x: (x * 2, x), a, has_aux=True)[2],
        "jvp": lambda: f.jvp(lambda x, y: (x * y, x.sum()), (a, b), (b, a)),
        "jvp with aux": lambda: f.jvp(lambda x: (x.sin(), x), (a,), (b,), has_aux=True),
        "jvp of a dict": lambda: f.jvp(lambda d: {"x": d["p"].sin()}, ({"p": a},), ({"p": b},)),
        "jvp of a constant": lambda: f.jvp(lambda x: b * 1, (a,), (b,)),
        "jvp with detach": lambda: f.jvp(lambda x: x - (x**2).detach(), (a,), (b,)),
        "jacrev": lambda: f.jacrev(product, argnums=(0, 1))(w, a[0]),
        "jacfwd": lambda: f.jacfwd(product, argnums=(0, 1))(w, a[0]),
        "jacrev of a dict": lambda: f.jacrev(of_dict)({"w": w, "x": a[0]}),
        "jacfwd of a dict": lambda: f.jacfwd(of_dict)({"w": w, "x": a[0]}),
        "jacrev with aux": lambda: f.jacrev(lambda x: (x * x, x), has_aux=True)(a[0]),
        "jacfwd with aux": lambda: f.jacfwd(lambda x: (x * x, x), has_aux=True)(a[0]),
        "jacrev by the last": lambda: f.jacrev(product, argnums=-1)(w, a[0]),
        "hessian": lambda: f.hessian(lambda x, y: (x**2 * y).sum(), argnums=(0, 1))(a[0], b[0]),
        "hessian of a vector": lambda: f.hessian(lambda x: x**3)(a[0]),
        "Hessian times vector": lambda: f.jvp(f.grad(cube), (a,), (b,)),
        "Hessians": lambda: f.vmap(f.hessian(cube))(a),
        "autograd.grad": lambda: rows_of_jacobian(a[0]),
        "gradient of a leaf": lambda: f.grad(cube)(a.clone().requires_grad_()),
        "vmap of a leaf": lambda: f.vmap(lambda x: x * 2)(a.clone().requires_grad_()),
    }


def outcome(value: Any) -> Any:
    """A result as data: containers by kind; of tensors, type, shape, numbers, and whether they have a history."""
    if isinstance(value, dict):
        return {key: outcome(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *map(outcome, value)]
    if not hasattr(value, "detach"):
        return value
    array = np.asarray(value.detach().numpy(), dtype=float)
    numbers = [float(f"{number:.{DIGITS}g}") for number in array.ravel()]
    return [str(value.dtype).rpartition(".")[2], list(value.shape), numbers, bool(value.requires_grad)]


def near(one: Any, other: Any) -> bool:
    """Whether two outcomes agree, numbers up to rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(near(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, float):
        return bool(np.isclose(one, other, rtol=1e-8, atol=1e-10))
    return bool(one == other)
