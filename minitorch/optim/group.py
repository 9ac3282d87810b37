"""`ParamGroup`: parameters that are updated alike, and their hyperparameters.

A training step that was recorded once runs many times, while a schedule changes the learning rate. So every float among
the hyperparameters is kept in a 0-dimensional tensor: a graph has it as an input, and ``group["lr"] = 0.01`` writes to
it. Flags, and numbers that are zero, decide *which* operations an update has; they are constants of a graph instead;
changing it later, under a recorded step, is an error and not a silent no-op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import nullcontext
from typing import Any, TypedDict

from ..dtypes import DType, float64
from ..errors import TracingError
from ..functional.creation.creation import full
from ..functional.inplace import assign
from ..functional.movement.shaping import expand
from ..functional.operands import operand, to_dtype
from ..functional.options import real
from ..interpreters import current_staging
from ..nn.module import Module
from ..nn.parameter import concretely
from ..tensor import Tensor
from .counted import Members


class ParamGroup(MutableMapping[str, Any]):
    """A dict of ``"params"`` and hyperparameters, as PyTorch's; reading a float gives a Python float.

    While a step is recorded, to be run later with another value, it gives the 0-dimensional tensor that holds it: so an
    optimiser of one's own may read ``group["lr"]`` in every mode.

    Args:
        values: the entries.

    Example:
        >>> import minitorch as mt
        >>> group = ParamGroup({"params": [], "lr": 0.1, "betas": (0.9, 0.999)})
        >>> group["lr"] = 0.05
        >>> group["lr"], group["betas"], group.tensors("lr", dtype=mt.float32)
        (0.05, (0.9, 0.999), [tensor(0.0500)])
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self._values: dict[str, Any] = {}  # a float as a Tensor, a tuple of floats as a tuple of Tensors
        self._zero: dict[str, bool] = {}  # whether a float is zero
        self._baked: set[str] = set()
        self.slots: tuple[str, ...] = ()  # the state that the optimiser has made
        for name, value in values.items():
            self[name] = value

    # For users ---------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        if _is_recorded():
            return value
        if isinstance(value, Tensor):
            return value.item()
        if _is_tuple_of(value, Tensor):
            return tuple([tensor.item() for tensor in value])
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        old: Any = self._values.get(name)
        self._check_baked(name, value)
        if name == "params":
            Module.changes += 1
            value = Members(value)
        if isinstance(old, Tensor):
            _write([old], [value])
            self._zero[name] = not _is_set(value)
        elif _is_tuple_of(old, Tensor):
            _write(old, value)
        elif name in self._values:
            self._values[name] = value
        else:
            self._values[name] = _kept(value)
            self._zero[name] = isinstance(value, (float, Tensor)) and not _is_set(value)

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {self[name]}" for name in sorted(self) if name != "params")

    # For optimisers ----------------------------------------------------------------------------------------

    def tensors(self, *names: str, dtype: DType) -> list[Tensor]:
        """Return hyperparameters as 0-dimensional tensors of a type, to compute with."""
        found: list[Tensor] = []
        for name in names:
            value = self._values[name]
            found += value if isinstance(value, tuple) else [value]
        return [to_dtype(tensor, dtype) for tensor in found]

    def uses(self, name: str) -> bool:
        """Return whether a flag is set, or a number not zero, where the answer shapes the update."""
        if _is_recorded():
            self._baked.add(name)
        return self._has(name)

    def _has(self, name: str) -> bool:
        value = self._values[name]
        return not self._zero[name] if isinstance(value, Tensor) else bool(value)

    def check(self, name: str, value: Any) -> None:
        """Refuse invalid values before any is set.

        Raises:
            TypeError: for a value of another kind.
            ValueError: for a tuple of another length.
            TracingError: for another flag, under a step that was recorded (``MT106``).
        """
        old = self._values[name]
        if isinstance(old, Tensor):
            self._check_baked(name, real(name, value))
        elif _is_tuple_of(old, Tensor):
            if not isinstance(value, list | tuple):
                raise TypeError(f"{name} is a tuple of numbers, not {type(value).__name__}")
            if len(value) != len(old):
                raise ValueError(f"{name} has {len(old)} numbers, not {len(value)}")
            for number in value:
                real(name, number)
        else:
            kinds = bool if isinstance(old, bool) else int | float if isinstance(old, int) else object
            if not isinstance(value, kinds):
                raise TypeError(f"{name} is {old!r}, and cannot be {value!r:.60}")
            self._check_baked(name, value)

    def _check_baked(self, name: str, value: Any) -> None:
        if name in self._baked and _is_set(value) != (old := self._has(name)):
            was = f"{'not ' * old}zero" if isinstance(self._values[name], Tensor) else repr(self._values[name])
            raise TracingError(
                "MT106",
                f"{name} was {was} when the optimiser's step was recorded into a graph",
                why="a number is an input of the graph; a flag, or whether a term is there at all, is its structure",
                fix=f"set {name} before the step is first traced, or make a new optimiser and trace a new step",
            )

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors that hold hyperparameters, with names for graph listings."""
        for name, value in self._values.items():
            if isinstance(value, Tensor):
                yield name, value
            elif _is_tuple_of(value, Tensor):
                for position, tensor in enumerate(value, 1):
                    yield f"{name.removesuffix('s')}{position}", tensor


def nonnegative(what: str, value: Any) -> float:
    """Return a hyperparameter that cannot be negative, as a float.

    Raises:
        TypeError: if it is not a number.
        ValueError: if it is negative, or NaN.
    """
    number = real(what, value)
    if not number >= 0:
        raise ValueError(f"{what} cannot be negative: {number}; give 0 or a positive number")
    return number


def _shares(what: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"{what} are two numbers, such as (0.9, 0.999), not {value!r}")
    first, second = (real(f"{what.partition(':')[0]}: each of betas", each) for each in value)
    if not (0 <= first < 1 and 0 <= second < 1):
        raise ValueError(f"{what} are from 0 up to, not including, 1; they are {value}")
    return first, second


def _share(what: str, value: Any) -> float:
    number = real(what, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{what} is a share, from 0 to 1, not {number}")
    return number


# How a value of each name is checked; others are flags.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("alpha", "eps", "lr", "momentum", "weight_decay"), nonnegative),
    **dict.fromkeys(("initial_accumulator_value", "lr_decay", "momentum_decay"), nonnegative),
    "betas": _shares,
    "dampening": real,
    "rho": _share,
}


class How(TypedDict, total=False):
    """PyTorch's choices of how a step is carried out.

    A jitted step is one program, whatever is chosen: `foreach`, `fused` and `capturable` are taken and change nothing.
    """

    foreach: bool | None
    fused: bool | None
    capturable: bool
    differentiable: bool


def hyperparameters(name: str, how: How | None = None, **given: Any) -> dict[str, Any]:
    """Return the hyperparameters of an optimiser of a name, checked.

    Raises:
        TypeError: if a number is something else.
        ValueError: if it is out of range, or a step should be differentiable.
    """
    for option, value in (how or {}).items():
        if option not in How.__annotations__:
            raise TypeError(f"{name} has no option {option!r}; it has {', '.join(How.__annotations__)}")
        if option == "differentiable" and value:
            raise ValueError(f"{name}: a step is not differentiable; write `p - lr * g` for a step with a gradient")
    return {each: CHECKS[each](f"{name}: {each}", value) if each in CHECKS else value for each, value in given.items()}


def _is_set(value: Any) -> bool:
    """Return whether a flag is set, or a number not zero; the number of a recorded tensor is known only later."""
    return (isinstance(value, Tensor) and _is_recorded()) or bool(value)


def _is_recorded() -> bool:
    """Return whether operations are being recorded now, to run later."""
    staging = current_staging()
    return staging is not None and not staging.defers


def _is_tuple_of(value: Any, kind: type) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(item, kind) for item in value)


def _number(value: float | Tensor) -> Tensor:
    with concretely():
        return full((), value.item() if isinstance(value, Tensor) else float(value), dtype=float64)


def _kept(value: Any) -> Any:
    if isinstance(value, (float, Tensor)):
        return _number(value)
    if _is_tuple_of(value, float):
        return tuple([_number(item) for item in value])
    return value


def _write(tensors: Sequence[Tensor], values: Iterable[Any]) -> None:
    """Write all values, or none if one of them is refused."""
    staging = current_staging()
    # while a graph is defined, it is not running: the value is set once, and holds now
    with concretely() if staging is not None and staging.is_definition else nullcontext():
        new = [operand(value, float64) for value in values]
        for tensor, value in [*zip(tensors, [expand(each, ()) if each.ndim else each for each in new], strict=True)]:
            assign(tensor, value, "setting a hyperparameter")
