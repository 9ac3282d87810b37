"""`LRScheduler`: counts epochs, and writes the learning rates of an optimiser's groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ...errors import TracingError
from ...functional.options import real, whole
from ...interpreters import current_staging
from ..optimizer import Optimizer


def checked(optimizer: Any, name: str) -> Optimizer:
    """Return an optimiser; refuse anything else."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name} takes an optimizer first, not {type(optimizer).__name__}")
    return optimizer


def outside_of_recordings() -> None:
    """Refuse to go on to the next epoch inside of a function that is being recorded."""
    staging = current_staging()
    if staging is not None and not staging.defers:
        raise TracingError(
            "MT105",
            "a scheduler's step inside of a recorded function",
            why="it counts epochs in a Python int, which would change now and never again when the graph runs",
            fix="call scheduler.step() after the recorded function; the graph reads the new learning rate",
        )


class LRScheduler:
    """Base class: a subclass computes the next learning rates of the groups in `get_lr`.

    Args:
        optimizer: the optimiser whose groups are changed.
        last_epoch: the number of past epochs, minus one, for going on after a break.

    Raises:
        TypeError: if a number is something else.
        KeyError: when going on, if the groups do not hold their initial learning rates.
    """

    kept: ClassVar[tuple[str, ...]] = ()  # attributes that are part of the state

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer, type(self).__name__)
        self.base_lrs: list[float] = []
        if last_epoch != -1:
            whole(f"{type(self).__name__}: last_epoch", last_epoch)
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f'{type(self).__name__}: with last_epoch={last_epoch} each group needs an "initial_lr", the '
                    "learning rate that it began with: load the optimizer's state first, or set it"
                )
            self.base_lrs.append(group["initial_lr"])
        self.last_epoch = last_epoch
        self.begin()

    def begin(self) -> None:
        """Set the rates of the first epoch."""
        self._is_initial = True
        self.step()
        self._is_initial = False

    def restart(self) -> None:
        """Begin again from the first rates, once another scheduler has had its epochs."""
        self.write(self.base_lrs)
        self.begin()

    def get_lr(self) -> list[float]:
        """Return the learning rates of the groups in epoch `self.last_epoch`, from the present and the first ones."""
        raise NotImplementedError(f"{type(self).__name__} does not say what the learning rates are")

    def rates(self) -> list[float]:
        """Return the present learning rates of the groups."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """Return the learning rates that the last `step` gave the groups."""
        return self._last_lr

    def step(self) -> None:
        """Go on to the next epoch.

        Raises:
            TracingError: inside of a function that is being recorded (``MT105``).
        """
        outside_of_recordings()
        self.last_epoch += 1
        self.write(self.get_lr())

    def write(self, rates: Sequence[float]) -> None:
        """Give the groups their learning rates."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = self.rates()

    def state_dict(self) -> dict[str, Any]:
        """Return the number of the epoch, the initial learning rates, and what else changes from epoch to epoch."""
        return {name: getattr(self, name) for name in ("last_epoch", "base_lrs", *self.kept)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`.

        Raises:
            TypeError: if it is not such a dict.
            ValueError: if it has learning rates of more or fewer groups; nothing is loaded then.
        """
        self._loading(state_dict)()

    def _loading(self, state_dict: Any) -> Callable[[], None]:
        """Check a state, and return the function that writes it."""
        if not isinstance(state_dict, Mapping) or not {"last_epoch", "base_lrs"} <= state_dict.keys():
            raise TypeError(
                'load_state_dict takes what state_dict() gave, a dict with "last_epoch" and "base_lrs", '
                f"not {type(state_dict).__name__}: {state_dict!r:.60}"
            )
        rates, count = state_dict["base_lrs"], len(self.optimizer.param_groups)
        if not isinstance(rates, list | tuple):
            raise TypeError(f"load_state_dict: base_lrs is a list of learning rates, not {type(rates).__name__}")
        if len(rates) != count:
            raise ValueError(f"the optimiser has {count} groups, and the state learning rates for {len(rates)}")
        epoch = whole("load_state_dict: last_epoch", state_dict["last_epoch"])
        found = [real("load_state_dict: a learning rate", rate) for rate in rates]

        def write() -> None:
            vars(self).update({name: state_dict[name] for name in self.kept if name in state_dict})
            self.last_epoch, self.base_lrs = epoch, found
            self._last_lr = self.rates()

        return write
