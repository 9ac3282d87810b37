"""`GradScaler`: dynamic loss scaling (Micikevicius et al., arXiv:1710.03740, section 3.2).

The loss is multiplied, so that small gradients are not lost in float16, and a step whose gradients are too large is
skipped. Everything that changes is a tensor: the scale, the count of good steps since it last changed, and the
settings. A recorded training step has them as inputs and writes them back, so one graph serves for all scales. A step
that overflows is skipped there by a selection, not by a branch:

    gradients ──► finite? ──────────────┐
        │ / scale                       ▼
        └────► optimiser's update ──► where(finite, new, old) ──► weights, and the optimiser's state
                                        └──► where(finite, grown, scale * backoff) ──► scale

In eager mode the optimiser is not called, as in PyTorch: the same numbers, for less work.

Between `unscale_` and `update` a scaler knows the optimisers whose gradients it has looked at. In a recording that is
knowledge of the recording, and goes when it is over, also where it fails. So `unscale_`, `step` and `update` are in one
recording, or none of them is: whoever goes on outside would divide the gradients again.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minitorch import primitives as P
from minitorch.autograd import no_grad
from minitorch.dtypes import float16, float32, float64, int32
from minitorch.errors import TracingError
from minitorch.functional.creation.data import tensor
from minitorch.functional.devices import on_cpu
from minitorch.functional.inplace import assign
from minitorch.functional.operands import to_dtype
from minitorch.functional.options import real
from minitorch.functional.pointwise.casting import clone
from minitorch.functional.pointwise.comparison import isfinite
from minitorch.functional.reducing.reductions import all as all_of
from minitorch.interpreters import current_staging
from minitorch.ir import Node
from minitorch.nn.module import Stateful
from minitorch.nn.parameter import concretely
from minitorch.optim import Optimizer
from minitorch.tensor import Tensor


@dataclass
class _Checked:
    """An optimiser's gradients, as they were found since the last update.

    Attributes:
        overflowed: whether one of them is infinite or NaN; a bool tensor.
        stepped: whether the optimiser has made its step.
    """

    overflowed: Tensor
    stepped: bool = False


class GradScaler(Stateful):
    """Scales a loss before `backward`, and divides the gradients by the scale before a step, as `torch.amp.GradScaler`.

    A training step is ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``, ``scaler.update()``, eagerly,
    within one jitted function or a lazy block; the graph of a `Session` runs what is fetched, and these give nothing to
    fetch. A step whose gradients are not all finite is skipped, and the scale is lowered; after
    `growth_interval` steps without one it is raised. Weights and their gradients are float32 (`autocast` casts them
    where they are used).

    Args:
        device: ``"cpu"``.
        init_scale: the scale at first.
        growth_factor: what the scale is multiplied by when it grows; more than 1. A scale does not grow to infinity.
        backoff_factor: what it is multiplied by after an overflow; between 0 and 1.
        growth_interval: how many steps in a row without an overflow raise it.
        enabled: False makes `scale` and `step` those of a program without a scaler, and the rest do nothing.

    Raises:
        ValueError: for a number that none of these can be.
        DeviceError: for another device (``MT203``).

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer, scaler = mt.optim.SGD([w], lr=0.5), mt.amp.GradScaler(init_scale=8.0)
        >>> @mt.jit
        ... def step(x):
        ...     optimizer.zero_grad()
        ...     scaler.scale((w * x).sum()).backward()
        ...     scaler.step(optimizer)
        ...     scaler.update()
        >>> step(mt.ones(2))
        >>> w, scaler.get_scale()
        (tensor([0.5000, 1.5000], requires_grad=True), 8.0)
        >>> step(mt.tensor([1.0, mt.inf]))
        >>> w, scaler.get_scale()
        (tensor([0.5000, 1.5000], requires_grad=True), 4.0)
        >>> len(step.explain().signatures)
        1
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        on_cpu(device)
        self._enabled = bool(enabled)
        self._checked: dict[Optimizer, _Checked] = {}
        with concretely():
            self._scale = tensor(_scale(init_scale), dtype=float32)
            self._good_steps = tensor(0, dtype=int32)
            self._growth_factor = tensor(_growth_factor(growth_factor), dtype=float64)
            self._backoff_factor = tensor(_backoff_factor(backoff_factor), dtype=float64)
            self._growth_interval = tensor(_growth_interval(growth_interval), dtype=int32)

    # A training step ----------------------------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """A loss times the scale; of tuples, lists and other iterables, each of them.

        Of a loss in 16 bits the product is computed in float32, and rounded.

        Raises:
            ValueError: for something else than tensors.

        Warns:
            UserWarning: in eager mode, if a loss in float16 overflows, since its step will be skipped.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return self._scaled(outputs)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError(f"GradScaler.scale takes a tensor or an iterable of them, not {type(outputs).__name__}")

    def _scaled(self, loss: Tensor) -> Tensor:
        if loss.ndim == 0 or loss.dtype not in (float16, float32):
            return loss * self._scale
        product = to_dtype(to_dtype(loss, float32) * self._scale, loss.dtype)
        if loss.dtype is float16 and current_staging() is None:
            self._warn_of_overflow(loss, product)
        return product

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimiser's parameters by the scale, in place, and see whether they are finite.

        `step` does so if this was not called. Call it to look at gradients, or to clip them, before the step.

        Raises:
            RuntimeError: if it was called since the last `update`, or the optimiser has made its step.
            ValueError: for gradients in float16: master weights are in float32.
        """
        if not self._enabled:
            return
        checked = self._known()
        known = checked.get(optimizer)
        if known is not None:
            raise RuntimeError(
                "unscale_() is being called after step()."
                if known.stepped
                else "unscale_() has already been called on this optimizer since the last update()."
            )
        gradients = [each.grad for each in _parameters(optimizer) if each.grad is not None]
        if not gradients:
            raise RuntimeError("No inf checks were recorded for this optimizer: none of its parameters has a gradient.")
        for gradient in gradients:
            if gradient.dtype is float16:
                raise ValueError(
                    f"Attempting to unscale FP16 gradients: one is {gradient.spec}. Keep the parameters in float32; "
                    "autocast casts them where they are used."
                )
        with no_grad():
            inverse = to_dtype(1 / to_dtype(self._scale, float64), float32)
            finite = all_of(isfinite(gradients[0]))
            for gradient in gradients[1:]:
                finite = P.bitwise_and(finite, all_of(isfinite(gradient)))
            for gradient in gradients:
                assign(gradient, to_dtype(to_dtype(gradient, float32) * inverse, gradient.dtype))
        checked[optimizer] = _Checked(P.bitwise_not(finite))

    def condition(self) -> bool:
        """Whether gradients were unscaled, or a step was made, since the last update outside of any recording."""
        return bool(self._checked)

    def require_settled(self, state: Mapping[Optimizer, Any], name: str) -> None:
        """Refuse the end of a recording between `unscale_` and `update`.

        Args:
            state: what the recording knows of optimisers.
            name: of the recorded function.

        Raises:
            TracingError: naming what was called, and what was not (``MT105``).
        """
        if state:
            called = "step()" if all(each.stepped for each in state.values()) else "unscale_()"
            raise TracingError(
                "MT105",
                f"{name} calls {called} of a GradScaler, and not update()",
                why="whether gradients are unscaled, and finite, is known within one recording only: a step() outside "
                "would divide them by the scale again, and an update() would not see them",
                fix="call unscale_(), step() and update() in one jitted function, or all of them outside of it",
            )

    def _known(self) -> dict[Optimizer, _Checked]:
        """What is known of the gradients at this point of the program."""
        staging = current_staging()
        if staging is not None and not staging.defers:
            if self._checked:
                raise RuntimeError(
                    "unscale_() or step() was called outside of the jitted function that goes on with it. Call "
                    "unscale_(), step() and update() in one jitted function, or none of them in one."
                )
            staging.states.setdefault(self, {})
            found: dict[Optimizer, _Checked] = staging.states[self]
            return found
        for optimizer, each in list(self._checked.items()):  # of a lazy block that has failed
            value = each.overflowed._value
            if isinstance(value, Node) and (staging is None or value.trace is not staging.trace):
                del self._checked[optimizer]
        return self._checked

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Let the optimiser make its step, unless a gradient is infinite or NaN.

        In a recording the update is computed in every case, and where a gradient is not finite, parameters and the
        optimiser's state keep their values.

        Args:
            optimizer: its gradients are divided by the scale first, unless `unscale_` did.
            args, kwargs: for the optimiser's `step`; no closure.

        Returns:
            What the optimiser's `step` returns; None if it is skipped.

        Raises:
            RuntimeError: for a closure, or if the optimiser has made its step since the last `update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        known = self._known().get(optimizer)
        if known is not None and known.stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if known is None:
            self.unscale_(optimizer)
            known = self._known()[optimizer]
        known.stepped = True
        if current_staging() is not None:
            return _selected(known.overflowed, optimizer, kwargs)
        return None if known.overflowed.item() else optimizer.step(**kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Lower the scale if a step was skipped, raise it if none was for long enough; or set it.

        Raises:
            RuntimeError: if no gradients were looked at since the last update.
            ValueError: for a new scale that is no positive finite number.
        """
        if not self._enabled:
            return
        checked = self._known()
        if new_scale is not None:
            self._set(new_scale)
        elif not checked:
            raise RuntimeError(
                "No inf checks were recorded prior to update. A jitted step calls update() itself, after step()."
            )
        else:
            with no_grad():
                self._adapt([each.overflowed for each in checked.values()])
        checked.clear()

    def _adapt(self, overflows: list[Tensor]) -> None:
        overflowed = overflows[0]
        for each in overflows[1:]:
            overflowed = P.bitwise_or(overflowed, each)
        wide, count = to_dtype(self._scale, float64), self._good_steps + 1
        grown = to_dtype(wide * self._growth_factor, float32)
        due = P.equal(count, self._growth_interval)
        raised = P.where(P.bitwise_and(due, isfinite(grown)), grown, self._scale)
        scale = P.where(overflowed, to_dtype(wide * self._backoff_factor, float32), raised)
        none = P.constant(value=0, shape=(), dtype=int32)
        assign(self._good_steps, P.where(P.bitwise_or(overflowed, due), none, count))
        assign(self._scale, scale)

    def _set(self, new_scale: float | Tensor) -> None:
        if not isinstance(new_scale, Tensor):
            new_scale = tensor(_scale(new_scale), dtype=float32)
        elif new_scale.numel() != 1 or new_scale.requires_grad:
            raise ValueError(
                f"GradScaler.update: the new scale is a number or a tensor of one element without gradient, "
                f"not {new_scale.spec}"
            )
        with no_grad():
            assign(self._scale, P.reshape(new_scale, shape=()))

    def _warn_of_overflow(self, loss: Tensor, product: Tensor) -> None:
        """Say that finite losses are infinite in float16 once they are scaled."""
        with no_grad():
            lost = isfinite(loss) & ~isfinite(product)
            if lost.any().item():
                worst = P.where(lost, loss, P.constant(value=0, shape=loss.shape, dtype=float16)).abs().max().item()
                warnings.warn(
                    f"GradScaler.scale: float16 overflow in a loss scale: {worst:g} times the scale "
                    f"{self.get_scale():g} is more than 65504, so the step will be skipped; scale loss.float().",
                    stacklevel=4,
                )

    # Settings -----------------------------------------------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale; 1 if the scaler is not enabled."""
        return float(self._scale.item()) if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return float(self._growth_factor.item())

    def set_growth_factor(self, new_factor: float) -> None:
        """Change it; recorded steps go on with the new one."""
        _write(self._growth_factor, _growth_factor(new_factor))

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an overflow."""
        return float(self._backoff_factor.item())

    def set_backoff_factor(self, new_factor: float) -> None:
        """Change it; recorded steps go on with the new one."""
        _write(self._backoff_factor, _backoff_factor(new_factor))

    def get_growth_interval(self) -> int:
        """How many steps without an overflow raise the scale."""
        return int(self._growth_interval.item())

    def set_growth_interval(self, new_interval: int) -> None:
        """Change it; recorded steps go on with the new one."""
        _write(self._growth_interval, _growth_interval(new_interval))

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Its tensors, with names for graph listings."""
        yield "scale", self._scale
        yield "good_steps", self._good_steps
        for name in ("growth_factor", "backoff_factor", "growth_interval"):
            yield name, getattr(self, f"_{name}")

    def state_dict(self) -> dict[str, Any]:
        """The scale, the count of good steps and the settings, in PyTorch's layout; empty if it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self.get_growth_factor(),
            "backoff_factor": self.get_backoff_factor(),
            "growth_interval": self.get_growth_interval(),
            "_growth_tracker": int(self._good_steps.item()),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, in place: recorded steps go on with it.

        Raises:
            TypeError: if it is no dict of numbers; nothing is loaded then, nor for any other error.
            RuntimeError: for the empty dict of a scaler that was not enabled.
            KeyError: if an entry is missing.
            ValueError: for a number that an entry cannot be.
        """
        self._loading(state_dict)()

    def _loading(self, state_dict: Mapping[str, Any]) -> Callable[[], None]:
        """Check a state; the function that writes it."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"GradScaler: load_state_dict takes a dict of numbers, not {type(state_dict).__name__}")
        if not self._enabled:
            return lambda: None
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        values: list[tuple[Tensor, float]] = []
        for name, target, check in self._entries():
            if name not in state_dict:
                raise KeyError(f"GradScaler: the state has no {name!r}")
            values.append((target, check(real(f"GradScaler: {name}", state_dict[name]))))

        def write() -> None:
            for target, value in values:
                _write(target, value)

        return write

    def _entries(self) -> list[tuple[str, Tensor, Callable[[Any], float]]]:
        return [
            ("scale", self._scale, _scale),
            ("growth_factor", self._growth_factor, _growth_factor),
            ("backoff_factor", self._backoff_factor, _backoff_factor),
            ("growth_interval", self._growth_interval, _growth_interval),
            ("_growth_tracker", self._good_steps, _good_steps),
        ]


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _selected(overflowed: Tensor, optimizer: Optimizer, options: dict[str, Any]) -> Any:
    """The optimiser's step in a recording, whose writes change nothing where a gradient overflowed."""
    written = {id(each): each for each in _parameters(optimizer) if each.grad is not None}
    written |= {id(each): each for state in optimizer.state.values() for each in state.values()}
    with no_grad():
        before = [clone(each) for each in written.values()]
        result = optimizer.step(**options)
        for each, old in zip(written.values(), before, strict=True):
            assign(each, P.where(overflowed, old, each))
    return result


def _write(target: Tensor, value: float) -> None:
    with no_grad():
        assign(target, tensor(value, dtype=target.dtype))


# The numbers that settings can be ------------------------------------------------------------------------------------


def _scale(value: float) -> float:
    if not (0 < value < math.inf):
        raise ValueError(f"GradScaler: a scale is positive and finite, not {value}")
    return float(value)


def _growth_factor(value: float) -> float:
    if not (1 < value < math.inf):
        raise ValueError(f"GradScaler: the growth factor is more than 1, not {value}")
    return float(value)


def _backoff_factor(value: float) -> float:
    if not (0 < value < 1):
        raise ValueError(f"GradScaler: the backoff factor is between 0 and 1, not {value}")
    return float(value)


def _growth_interval(value: int) -> int:
    if not (1 <= value < 2**31) or value != int(value):
        raise ValueError(f"GradScaler: the growth interval is a whole number of steps, at least 1, not {value}")
    return int(value)


def _good_steps(value: float) -> int:
    if not (0 <= value < 2**31) or value != int(value):
        raise ValueError(f"GradScaler: the growth tracker is a whole number of steps, not {value}")
    return int(value)
