"""`LBFGS`, a quasi-Newton method for losses without noise, with a line search.

Nocedal and Wright, "Numerical optimization" (2006): the two-loop recursion is algorithm 7.4, the line search algorithms
3.5 and 3.6. Choices that these leave open are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..autograd import enable_grad, no_grad
from ..functional.creation.creation import zeros_like
from ..functional.inplace import assign
from ..functional.movement.arranging import cat
from ..functional.movement.parts import part
from ..functional.movement.shaping import ravel, reshape
from ..functional.options import whole
from ..tensor import Tensor
from .group import hyperparameters
from .optimizer import Optimizer

_DECREASE, _CURVATURE = 1e-4, 0.9  # the constants of the Wolfe conditions


class _Point(NamedTuple):
    """A place on the line that is searched."""

    step: float
    loss: float
    slope: float
    gradient: Tensor


def _least(a: _Point, b: _Point, low: float | None = None, high: float | None = None) -> float:
    """Return where the cubic through two points with their slopes is least, between two bounds (equation 3.59)."""
    a, b = (a, b) if a.step <= b.step else (b, a)
    low, high = a.step if low is None else low, b.step if high is None else high
    middle = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = middle * middle - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    found = b.step - (b.step - a.step) * ((b.slope + root - middle) / (b.slope - a.slope + 2 * root))
    return min(max(found, low), high)


def _strong_wolfe(
    at: Callable[[float], _Point], start: _Point, step: float, size: float, smallest: float, most: int
) -> tuple[_Point, int]:
    """Return a point that fulfils the strong Wolfe conditions, and how many points were computed.

    Args:
        at: the point of a step.
        start: the point of the step 0.
        step: the first step to try.
        size: the largest element of the direction.
        smallest: the change of an element below which the search ends.
        most: how many further points are tried.
    """

    def is_high(point: _Point) -> bool:
        return point.loss > start.loss + _DECREASE * point.step * start.slope

    def is_flat(point: _Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * start.slope

    before, now, tries = start, at(step), 0
    while tries < most:
        if is_high(now) or (tries > 1 and now.loss >= before.loss):
            break
        if is_flat(now):
            return now, tries + 1
        if now.slope >= 0:
            break
        step = _least(before, now, now.step + 0.01 * (now.step - before.step), now.step * 10)
        before, now, tries = now, at(step), tries + 1
    else:
        before = start
    low, high = (before, now) if before.loss <= now.loss else (now, before)
    was_near_end = False
    while tries < most and abs(low.step - high.step) * size >= smallest:
        first, last = min(low.step, high.step), max(low.step, high.step)
        step, margin = _least(low, high), 0.1 * (last - first)
        near_end = min(last - step, step - first) < margin
        if near_end and (was_near_end or not first < step < last):
            step = last - margin if abs(step - last) < abs(step - first) else first + margin
            near_end = False
        was_near_end = near_end
        new, tries = at(step), tries + 1
        if is_high(new) or new.loss >= low.loss:
            low, high = (low, new) if low.loss <= new.loss else (new, low)
            continue
        if is_flat(new):
            return new, tries + 1
        low, high = new, low if new.slope * (high.step - low.step) >= 0 else high
    return low, tries + 1


class LBFGS(Optimizer):
    """Limited-memory BFGS: steps along an approximation of the inverse Hessian times the gradient.

    Args:
        params: the parameters, one group.
        lr: the length of a step, or the first that is tried.
        max_iter: iterations in a step,
        max_eval: and calls of the closure, by default a quarter more.
        tolerance_grad: the largest element of a gradient at which a step ends,
        tolerance_change: and the change of a parameter, or of the loss.
        history_size: how many changes of the gradient are kept.
        line_search_fn: ``"strong_wolfe"``, or None.

    A step calls the closure until a condition holds, so it cannot be recorded; the closure may be a compiled function.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0, -1.0], requires_grad=True)
        >>> optimizer = mt.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 1) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> w.detach()
        tensor([1.0000, 1.0000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f'LBFGS: line_search_fn is "strong_wolfe" or None, not {line_search_fn!r}')
        defaults = hyperparameters("LBFGS", lr=float(lr), tolerance_grad=tolerance_grad)
        defaults |= {"max_iter": whole("LBFGS: max_iter", max_iter), "tolerance_change": tolerance_change}
        defaults |= {"max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        defaults |= {"history_size": whole("LBFGS: history_size", history_size), "line_search_fn": line_search_fn}
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS takes one group of parameters: it finds one direction for all")

    def _gradient(self) -> Tensor:
        """Return the gradients of all parameters in one dimension."""
        found = [(p.grad if p.grad is not None else zeros_like(p)) for p in self.param_groups[0]["params"]]
        return cat([ravel(each).detach() for each in found])

    def _go(self, places: list[Tensor], step: float, direction: Tensor) -> None:
        """Move the parameters from their places along a direction."""
        start = 0
        for p, place in zip(self.param_groups[0]["params"], places, strict=True):
            stop = start + p.numel()
            assign(p, place + reshape(part(direction, 0, start, stop), p.shape) * step, "LBFGS")
            start = stop

    def _direction(self, state: dict[str, Any], gradient: Tensor) -> Tensor:
        """Return minus the inverse Hessian times the gradient, after noting the last change of both."""
        if "prev_flat_grad" not in state:
            state |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
            return -gradient
        change, moved = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(moved).item()
        dirs, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature > 1e-10:
            for kept, new in ((dirs, change), (steps, moved), (inverses, 1 / curvature)):
                kept.append(new)
                del kept[: -self.param_groups[0]["history_size"]]
            state["H_diag"] = curvature / change.dot(change).item()
        shares: list[float] = []
        found: Tensor = -gradient
        for each, step, inverse in zip(reversed(dirs), reversed(steps), reversed(inverses), strict=True):
            shares.append(step.dot(found).item() * inverse)
            found = found - each * shares[-1]
        found = found * state["H_diag"]
        for each, step, inverse, share in zip(dirs, steps, inverses, reversed(shares), strict=True):
            found = found + step * (share - each.dot(found).item() * inverse)
        return found

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to `max_iter` steps.

        Args:
            closure: clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            The loss before.
        """
        if closure is None:
            raise TypeError("LBFGS.step takes a closure that computes the loss and its gradients")
        group: dict[str, Any] = dict(self.param_groups[0])
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def measured() -> Tensor:
            with enable_grad():
                result: Tensor = closure()
            state["func_evals"] += 1
            return result

        with no_grad():
            first = measured()
            self._iterate(group, state, measured, float(first), state["func_evals"] - 1)
        return first

    def _iterate(
        self, group: dict[str, Any], state: dict[str, Any], measured: Callable[[], Tensor], loss: float, before: int
    ) -> None:
        gradient = self._gradient()
        iterations = 0
        while gradient.abs().max().item() > group["tolerance_grad"] and iterations < group["max_iter"]:
            iterations, state["n_iter"] = iterations + 1, state["n_iter"] + 1
            is_first = "prev_flat_grad" not in state
            direction = self._direction(state, gradient)
            slope = gradient.dot(direction).item()
            step: float = group["lr"] * (min(1.0, 1 / gradient.abs().sum().item()) if is_first else 1.0)
            state |= {"d": direction, "t": step, "prev_flat_grad": gradient, "prev_loss": loss}
            if slope > -group["tolerance_change"]:
                return
            places = [p.detach().clone() for p in group["params"]]
            size = direction.abs().max().item()
            if group["line_search_fn"] is not None:

                def at(step: float, places: Any = places, direction: Tensor = direction) -> _Point:
                    self._go(places, step, direction)
                    loss, gradient = float(measured()), self._gradient()
                    return _Point(step, loss, gradient.dot(direction).item(), gradient)

                start, most = _Point(0.0, loss, slope, gradient), group["max_eval"] - (state["func_evals"] - before)
                found, _ = _strong_wolfe(at, start, step, size, 1e-9, most)
                step, loss, gradient = found.step, found.loss, found.gradient
                state["t"] = step
            self._go(places, step, direction)
            if group["line_search_fn"] is None and iterations < group["max_iter"]:
                loss, gradient = float(measured()), self._gradient()
            if state["func_evals"] - before >= group["max_eval"]:
                return
            if size * step <= group["tolerance_change"] or abs(loss - state["prev_loss"]) < group["tolerance_change"]:
                return
