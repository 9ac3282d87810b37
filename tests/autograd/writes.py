"""Small programs that write in place where gradients are recorded, for PyTorch and for us: `ROWS`.

Each takes the library, its functions, a leaf `x` and a leaf `w` of three numbers, and returns a tensor, whose sum is
differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ROWS: dict[str, Callable[..., Any]] = {}
X, W = (1.0, 2.0, 3.0), (0.5, -1.0, 2.0)
_BODIES = """
a number is added: y += 1; return y * y
the leaf is added: y += x; return y * y
a residual: y += w; return F.relu(y)
rows of a buffer: y = T.zeros(2, 3, dtype=x.dtype); y[0] = x; y[1] = x * x; return y * w
columns of a buffer: y = T.zeros(3, 3, dtype=x.dtype); y[:, 1] = x; y[:, 2] = y[:, 1] * w; return y * y
a mask is filled: y.masked_fill_(x > 1.5, 0.0); return y * x
relu: y.relu_(); return y * y
exp: y.exp_(); return y * w
tanh: y.tanh_(); return y * w
sigmoid: y.sigmoid_(); return y * w
clamp: y.clamp_(3, 5); return y * w
square: y.pow_(2); return y * w
sqrt, then another: y.sqrt_(); y.neg_(); return y * w
quotient: y.div_(w); return y * w
product with the leaf: y *= w; return y
product with itself: y *= y; return y
product with constants: y *= 3; y *= w.detach(); return y * y
a factor is overwritten: z = y * y; y += 1; return z
a term is overwritten: z = y * 3; y += 1; return z + y
a factor beside a leaf is overwritten: z = y * w; y += 1; return z + y
the numerator is overwritten: z = y / 2; y += 1; return z + y
the denominator is overwritten: z = 2 / y; y += 1; return z + y
the argument of relu is overwritten: z = F.relu(y); y += 1; return z * y
the argument of sum is overwritten: z = y.sum(); y += z; return y
a result that is read later is overwritten: z = y.exp(); z.mul_(2); return z
a view is scaled: v = y[1:]; v *= 3; return y * y
a view is scaled, and read: v = y[1:]; v *= 3; return v * v
its base is scaled, and the view read: v = y[1:]; y *= 3; return v * v
a view of a view: v = y[1:]; u = v[:1]; u += x[:1]; return v * v
two views that overlap: v = y[1:]; u = y[:2]; u *= x[:2]; return v * v * y[0]
another shape: v = y.view(3, 1); y.add_(1); return v * v
a transposed view: y = y.reshape(3, 1); y.transpose(0, 1)[0, 1:] += x[1:]; return y * y
a view of the tensor before it: v = y[0:2]; y = y + 1; v += 1; return y * v.sum()
a view becomes 0: y[0:2].zero_(); return y * y
an element becomes a number: y[0] = 5.0; return y * y
chosen elements: y[T.tensor([True, False, True])] = x[:2]; return y * y
elements by position: y[[0, 1]] = y[[1, 0]]; return y * w
elements change places: y[0], y[1] = y[1].clone(), y[0].clone(); return y * w
an expanded view: y = y.expand(2, 3); y += 1; return y
a detached tensor: y = y.detach(); y += 1; return y * x
a detached tensor takes the leaf: y = y.detach(); y += x; return y * x
the base of a detached tensor is read: z = y.detach(); z += 1; return y * y
another's elements: y.copy_(w * 3); return y * y
another's elements, with a leaf left: y = w * 2; y.copy_(x); return y * y
zeros: y.zero_(); return y * x
ones grow: y = T.ones(3, dtype=x.dtype); y *= x; y *= w; return y
an empty tensor is filled: y = T.empty(3, dtype=x.dtype); y.fill_(1.0); y.add_(x); y.clamp_(min=2.5); return y
the leaf itself: x += 1; return x
an element of the leaf: x[0] = 1; return x
two steps with options: y.sub_(x, alpha=2); y.addcmul_(x, w, value=2); return y * y
lerp: y.lerp_(w, 0.3); return y * y
index_add: y = T.zeros(3, dtype=x.dtype); y.index_add_(0, T.tensor([0, 0, 2]), x); return y * y
scatter: y = T.zeros(3, dtype=x.dtype); y.scatter_(0, T.tensor([2, 1, 0]), x); return y * y * w
a matrix row by row: m = T.full((3, 3), -9.0, dtype=x.dtype); m[0] = x; m[1, :2] = w[:2]; return F.softmax(m, 1) * w
a leaf of zeros: y = T.zeros(3, requires_grad=True, dtype=x.dtype); z = y * 1; z += x; return z * w
"""


def _row(body: str) -> Callable[..., Any]:
    lines = "\n".join(f"    {line}" for line in ["y = x * 2", *body.split("; ")])
    space: dict[str, Any] = {}
    exec(f"def program(T, F, x, w):\n{lines}", space)
    program: Callable[..., Any] = space["program"]
    return program


for _line in _BODIES.strip().splitlines():
    _name, _, _body = _line.partition(": ")
    ROWS[_name] = _row(_body)


def _row_of(name: str) -> Callable[[Callable[..., Any]], None]:
    return lambda program: ROWS.update({name: program})


@_row_of("without gradients, the leaf")
def _leaf(T: Any, F: Any, x: Any, w: Any) -> Any:
    with T.no_grad():
        x += 1
    return x * x


@_row_of("without gradients, a result")
def _result(T: Any, F: Any, x: Any, w: Any) -> Any:
    y = x * 2
    with T.no_grad():
        y += 1
    return y * y


@_row_of("a view made without gradients")
def _view(T: Any, F: Any, x: Any, w: Any) -> Any:
    y = x * 2
    with T.no_grad():
        v = y[1:]
    v *= 2
    return y


@_row_of("a recurrence into a buffer")
def _recurrence(T: Any, F: Any, x: Any, w: Any) -> Any:
    buffer, h = T.zeros(4, 3, dtype=x.dtype), x
    for step in range(4):
        h = (h * w).tanh()
        buffer[step] = h
    return buffer * buffer


@_row_of("an element at a time")
def _elements(T: Any, F: Any, x: Any, w: Any) -> Any:
    y = x * 2
    for place in range(3):
        y = y + 0
        y[place] = y[place] * x[place]
    return y


def answers(T: Any, F: Any, program: Callable[..., Any], way: Callable[..., Any] = lambda step: step) -> Any:
    """The result and the gradients by `x` and `w`, or None if the program is refused."""
    x, w = (T.tensor(list(numbers), requires_grad=True, dtype=T.float64) for numbers in (X, W))

    def step(x: Any, w: Any) -> Any:
        y = program(T, F, x, w).double()
        y.sum().backward()
        return y.detach()

    try:
        found = (way(step)(x, w), x.grad, w.grad)
    except (RuntimeError, IndexError):
        return None
    return [None if each is None else each.reshape(-1).tolist() for each in found]
