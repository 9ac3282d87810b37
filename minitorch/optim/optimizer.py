"""`Optimizer`, the base class. A subclass defines the state of a parameter, and the update of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import chain, count
from typing import Any

from ..autograd import enable_grad, grad, no_grad
from ..dtypes import float32
from ..functional.creation.creation import full
from ..functional.inplace import assign
from ..functional.operands import is_operand, operand
from ..interpreters import current_staging, for_one_line, interpreting
from ..nn.module import Module, Stateful, zero_gradients
from ..nn.parameter import concretely
from ..packages import is_own
from ..primitives.elementwise import scalar
from ..tensor import Tensor
from .counted import Entries, Members, States
from .group import ParamGroup

State = dict[str, Any]  # tensors, in an optimiser of this file's kind; in the user's own anything


COUNTS = ("step", "mu_product")  # the state that all parameters of a group share

_versions = count(1)


class Optimizer(Stateful):
    """Base class of optimisers, as `torch.optim.Optimizer`.

    A subclass defines `slots`, the names of the tensors in a parameter's state, and `update`. State is made when a
    parameter is added, not at its first step, so that it exists before any graph of a step does. Steps are counted per
    group, in PyTorch per parameter; a parameter that gets its first gradient later than its group sees the difference.
    A subclass written for PyTorch, with a `step` of its own that reads ``p.grad`` and puts what it likes into
    ``self.state[p]``, works in eager mode.

    Args:
        params: parameters, named parameters, or dicts of ``"params"`` and hyperparameters for groups of them.
        defaults: hyperparameters for the groups that do not give their own.

    Attributes:
        param_groups: the groups. ``optimizer.param_groups[0]["lr"] = 0.01`` is seen by recorded steps, too.
        state: for every parameter, its tensors by name.

    Example:
        >>> import minitorch as mt
        >>> class SignDescent(mt.optim.Optimizer):
        ...     def slots(self, group):
        ...         return ()
        ...     def update(self, group, parameters, gradients):
        ...         return [p.copy_(p - group["lr"] * g.sign()) for p, g in zip(parameters, gradients)]
        >>> w = mt.tensor([4.0, -1.0], requires_grad=True)
        >>> optimizer = SignDescent([w], {"lr": 0.5, "maximize": False})
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 3.5000, -0.5000], requires_grad=True)
    """

    _held: tuple[int, ...] = ()  # the ids of the tensors at the last look
    _version = "no tensors"
    is_counted = True
    _is_ours: bool  # so that no method is the user's

    def __init_subclass__(cls) -> None:
        cls._is_ours = is_own(cls.__module__)

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError("an optimiser takes several parameters: [tensor], or module.parameters()")
        self.defaults = defaults
        self.param_groups: list[ParamGroup] = Members()
        self.state: dict[Tensor, State] = States(Entries)
        given = list(params)
        if not given:
            raise ValueError(
                "the optimiser got no parameters (an iterator, such as module.parameters(), runs out once used)"
            )
        for group in given if isinstance(given[0], Mapping) else [{"params": given}]:
            self.add_param_group(group)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("param_groups", "state"):
            Module.changes += 1
            if name == "state" and self._is_ours and not isinstance(value, States):
                value = States(Entries, {each: Entries(state) for each, state in value.items()})
        object.__setattr__(self, name, value)

    def slots(self, group: ParamGroup) -> tuple[str, ...]:
        """Return the names of the tensors in the state of a group's parameters; none for one that makes its own.

        Those in `COUNTS` are one number for all parameters of the group, the others have the parameter's shape.
        """
        return ()

    def initial(self, group: ParamGroup, slot: str) -> float:
        """Return the number that a tensor of the state is filled with at first."""
        return 0.0

    def update(self, group: ParamGroup, parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
        """Write new values to parameters and state; return the results of the writes to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters that are updated with hyperparameters of their own; other entries stay in the group."""
        given = param_group["params"]
        parameters = [given] if isinstance(given, Tensor) else [_parameter(item) for item in given]
        known = {id(each) for group in self.param_groups for each in group["params"]}
        for parameter in parameters:
            if id(parameter) in known:
                raise ValueError(f"a parameter {parameter.spec} was given twice")
            known.add(id(parameter))
        group = ParamGroup({**self.defaults, **param_group, "params": Members(parameters)})
        self.param_groups.append(group)
        self._prepare(group, is_new=True)

    def _prepare(self, group: ParamGroup, is_new: bool = False) -> None:
        """Make the missing state: while a step is traced, too, if a program has forgotten it."""
        slots = self.slots(group)
        if slots == group.slots and (not slots or all(self.state[each] for each in group["params"])):
            return
        ready = [each for each in group["params"] if not getattr(each, "is_unfilled", False)]  # of a lazy layer
        group.slots = slots if len(ready) == len(group["params"]) else ()
        with concretely() if is_new else interpreting(None), no_grad():
            first = {name: self.initial(group, name) for name in slots}
            known = next((self.state[each] for each in ready if self.state[each]), {})
            counts = {n: known[n] if n in known else full((), first[n], dtype=float32) for n in slots if n in COUNTS}
            for parameter in ready:
                state = self.state[parameter]
                for name in slots:
                    if name not in state:
                        own = counts.get(name)
                        state[name] = full(parameter.shape, first[name], dtype=parameter.dtype) if own is None else own

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what was pickled or copied; PyTorch's subclasses call it."""
        vars(self).update(state)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the parameters' gradients, or set them to zero."""
        zero_gradients((each for group in self.param_groups for each in group["params"]), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, in place.

        Args:
            closure: computes the loss and its gradients; called first.

        Returns:
            The result of `closure`.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._apply(lambda parameter: parameter.grad)
        return loss

    def minimize(self, loss: Tensor) -> Any:
        """Compute the gradients of a loss and update the parameters: one operation, for a `Session` to run.

        No parameter's ``grad`` is read or changed.

        Returns:
            The updated parameters; while a graph is defined, the operation that updates them, the optimiser's state,
            and the buffers of the modules that the loss was computed with (the running statistics of a `BatchNorm2d`).

        Example:
            >>> import minitorch as mt
            >>> w = mt.tensor([1.0], requires_grad=True)
            >>> _ = mt.optim.SGD([w], lr=0.25).minimize((w * w).sum())
            >>> w
            tensor([0.5000], requires_grad=True)
        """
        trained = [each for group in self.param_groups for each in group["params"] if each.requires_grad]
        gradients = grad(loss, trained, allow_unused=True)
        found = {id(each): gradient for each, gradient in zip(trained, gradients, strict=True)}
        staging: Any = current_staging()

        def update() -> tuple[Tensor, ...]:
            return self._apply(lambda parameter: found.get(id(parameter)))

        return staging.training_step(loss, update) if staging and staging.is_definition else update()

    def _apply(self, gradient_of: Callable[[Tensor], Tensor | None]) -> tuple[Tensor, ...]:
        with no_grad():
            return tuple(self._updates(gradient_of))

    def _updates(self, gradient_of: Callable[[Tensor], Tensor | None]) -> Iterator[Tensor]:
        for group in self.param_groups:
            pairs = [(each, gradient) for each in group["params"] if (gradient := gradient_of(each)) is not None]
            if not pairs:
                continue
            parameters, gradients = map(list, zip(*pairs, strict=True))
            if group.uses("maximize"):
                gradients = [-gradient for gradient in gradients]
            self._prepare(group)
            if "step" in group.slots:
                step = self.state[parameters[0]]["step"]
                assign(step, step + 1)
            update = for_one_line(self.update) if self._is_ours else self.update
            yield from update(group, parameters, gradients)

    def condition(self) -> str:
        """Return the version of the set of parameters and tensors of state, the same object while that is the same.

        Whatever changes it is counted in `Module.changes`.

        Programs add and remove parameters, and replace or forget the state. An optimiser that makes its own, such as
        LBFGS or one written for PyTorch, assigns it in each step, which is no reason to trace again.
        """
        held: list[Iterable[Any]] = [group._values["params"] for group in self.param_groups]
        if self._is_ours and any(group.slots for group in self.param_groups):
            held += map(dict.values, self.state.values())
        now = tuple(map(id, chain.from_iterable(held)))
        if now != self._held:
            self._held, self._version = now, f"version {next(_versions)}, {len(now)} tensors"
        return self._version

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield all tensors of hyperparameters and state, with names for graph listings."""
        for number, group in enumerate(self.param_groups):
            prefix = f"group{number}." if len(self.param_groups) > 1 else ""
            for name, tensor in group.named_tensors():
                yield prefix + name, tensor
        for position, state in enumerate(self.state.values()):
            for name, tensor in state.items():
                if isinstance(tensor, Tensor):
                    yield f"{name}.{position}", tensor

    # State -------------------------------------------------------------------------------------------------

    def _positions(self) -> list[Tensor]:
        return [each for group in self.param_groups for each in group["params"]]

    def state_dict(self) -> dict[str, Any]:
        """Return state and hyperparameters in PyTorch's layout: parameters are numbered in the order of the groups."""
        positions = {id(each): number for number, each in enumerate(self._positions())}
        return {
            "state": {positions[id(each)]: dict(state) for each, state in self.state.items() if state},
            "param_groups": [
                {**group, "params": [positions[id(each)] for each in group["params"]]} for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict` in place: recorded steps go on with it.

        Raises:
            TypeError: if it is not such a dict.
            ValueError: if groups, parameters or shapes differ; nothing is loaded then.
        """
        self._loading(state_dict)()

    def _loading(self, state_dict: Mapping[str, Any]) -> Callable[[], None]:
        """Check a state, and return the function that writes it."""
        _check_state(state_dict)
        groups, states = state_dict["param_groups"], state_dict["state"]
        sizes = [len(group["params"]) for group in self.param_groups], [len(group["params"]) for group in groups]
        if sizes[0] != sizes[1]:
            raise ValueError(f"the optimiser has groups of {sizes[0]} parameters, the state of {sizes[1]}")
        numbers = [number for group in groups for number in group["params"]]
        writes: list[tuple[Tensor, Tensor]] = []
        homes = [group for group in self.param_groups for _ in group["params"]]
        makes_its_own = type(self).update is Optimizer.update
        kept: dict[Tensor, State] = {}
        for number, parameter, home in zip(numbers, self._positions(), homes, strict=True):
            own, given = self.state.get(parameter, {}), states.get(number, {})
            if makes_its_own:
                kept[parameter] = deepcopy(dict(given))
                continue
            for name, tensor in own.items():
                if name in given and not is_operand(given[name]):
                    raise TypeError(
                        f"{name} of parameter {number} is a tensor or a number, not {type(given[name]).__name__}"
                    )
                value = operand(given[name]) if name in given else scalar(self.initial(home, name), tensor)
                if name in given and value.shape != tensor.shape:
                    raise ValueError(
                        f"{name} of parameter {number} has the shape {list(value.shape)} in the state, "
                        f"{list(tensor.shape)} in the optimiser"
                    )
                writes.append((tensor, value))
        steps = {id(tensor): value for tensor, value in writes if tensor.ndim == 0}
        for tensor, value in writes:
            if id(tensor) in steps and steps[id(tensor)].item() != value.item():
                raise ValueError("the parameters of a group were not updated equally often; here a group has one count")
        settings = [
            (
                group,
                {name: value for name, value in given.items() if name != "params" and name in {*group, "initial_lr"}},
            )
            for group, given in zip(self.param_groups, groups, strict=True)
        ]
        for group, values in settings:
            for name, value in values.items():
                if name in group:
                    group.check(name, value)

        def write() -> None:
            with no_grad():
                for tensor, value in writes:
                    assign(tensor, value, "load_state_dict")
            self.state.update(kept)
            for group, values in settings:
                group.update(values)

        return write

    def __repr__(self) -> str:
        parts = []
        for number, group in enumerate(self.param_groups):
            rows = "\n".join("    " + row for row in repr(group).splitlines())
            parts.append(f"Parameter Group {number}\n{rows}\n")
        return f"{type(self).__name__} (\n" + "".join(parts) + ")"


def _check_state(given: object) -> None:
    """Refuse anything but the result of an optimiser's `state_dict`."""
    if not isinstance(given, Mapping) or not {"param_groups", "state"} <= given.keys():
        raise TypeError(
            'load_state_dict takes what state_dict() gave, a dict with "param_groups" and "state", '
            f"not {type(given).__name__}: {given!r:.200}"
        )
    groups, states = given["param_groups"], given["state"]
    if not isinstance(groups, list | tuple) or not all(
        isinstance(group, Mapping) and isinstance(group.get("params"), list | tuple) for group in groups
    ):
        raise TypeError('load_state_dict: "param_groups" is a list of dicts, each with a list "params"')
    if not all(isinstance(number, int) for group in groups for number in group["params"]):
        raise TypeError('load_state_dict: "params" is a list of the numbers of parameters')
    if not isinstance(states, Mapping) or not all(isinstance(state, Mapping) for state in states.values()):
        raise TypeError('load_state_dict: "state" is a dict, with a dict for each parameter')


def _parameter(item: Any) -> Tensor:
    """Return a parameter, from itself or from a pair of its name and itself."""
    parameter = item[1] if isinstance(item, tuple) else item
    if not isinstance(parameter, Tensor):
        raise TypeError(f"an optimiser takes tensors, not {type(parameter).__name__}")
    if parameter._entry is not None:
        raise ValueError(f"an optimiser takes leaves; {parameter.spec} is the result of a recorded operation")
    return parameter
