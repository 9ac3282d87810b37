"""`Module`: a tree of parameters, buffers and other modules, with a `forward`.

A module keeps everything in ordinary attributes. Its parameters are the attributes that are a `Parameter`, its
children those that are a `Module`; the lists below search them on each call. Only buffers, which are plain tensors,
have to be named (`register_buffer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, Protocol, Self, TypeVar

from ..autograd import no_grad
from ..autograd.gradients import HookHandle, set_grad
from ..drawable import Drawable
from ..dtypes import bfloat16, float16, float32, float64
from ..functional.devices import on_cpu
from ..functional.inplace import assign
from ..functional.operands import is_operand, operand
from ..functional.pointwise.casting import wanted_type
from ..interpreters import concrete
from ..interpreters.state import thread
from ..tensor import Tensor
from .parameter import Parameter

T = TypeVar("T")


class IncompatibleKeys(NamedTuple):
    """Differences that `load_state_dict` with ``strict=False`` found."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def _no_forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(f"{type(self).__name__} has no forward: define `def forward(self, x): ...`")


P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Forwarding(Protocol[P, R_co]):
    """Object whose calls are those of its method `forward`, such as a module."""

    @property
    def forward(self) -> Callable[P, R_co]:
        """Return the method."""
        ...


class _Called:
    """Type of `Module.__call__`: that of the module's own `forward`."""

    def __get__(self, module: Forwarding[P, R], owner: Any = None) -> Callable[P, R]:
        raise NotImplementedError


class Module(Drawable):
    """Base class of layers and networks, as `torch.nn.Module`.

    Assign parameters and modules as attributes in `__init__`, and define `forward`; calling the module calls it.

    Attributes:
        training: whether layers such as `Dropout` and `BatchNorm2d` behave as in training.

    Example:
        >>> import minitorch as mt
        >>> class Twice(mt.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = mt.nn.Linear(2, 2)
        ...     def forward(self, x):
        ...         return self.layer(self.layer(x))
        >>> net = Twice()
        >>> net
        Twice(
          (layer): Linear(in_features=2, out_features=2, bias=True)
        )
        >>> [name for name, parameter in net.named_parameters()]
        ['layer.weight', 'layer.bias']
        >>> net(mt.zeros(1, 2)).shape
        (1, 2)
    """

    training: bool
    changes: ClassVar[int] = 0  # assignments to attributes of any module, and new hooks; compiled functions check it
    forward: Any = _no_forward  # a method, or its jitted form
    quantised: Any = None  # of the operations in `forward`, those whose operands are quantised

    _buffer_names: dict[str, bool]  # name -> whether it is part of the state_dict
    _hooks: dict[str, list[Any]]
    _kinds: dict[str, str]  # of the parameters and modules by name, also while one is None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:  # not __init__, which subclasses forget to call
        self = super().__new__(cls)
        object.__setattr__(self, "_kinds", {})
        object.__setattr__(self, "_buffer_names", {})
        self.training = True
        self._hooks = {"before": [], "after": []}
        return self

    def __init__(self) -> None:
        """Do nothing: a class after this one among the bases is initialised by name, as in PyTorch."""

    def __setattr__(self, name: str, value: Any) -> None:
        kind = "parameter" if isinstance(value, Parameter) else "module" if isinstance(value, Module) else ""
        held = self._kinds.get(name) or ("buffer" if name in self._buffer_names else "")
        if held and value is not None and kind not in (held, "parameter"):
            self._require_kind(name, value, held)
        if kind:
            self._kinds[name] = kind
        object.__setattr__(self, name, value)
        Module.changes += 1

    def _require_kind(self, name: str, value: Any, held: str) -> None:
        """Refuse a value that would remove a part of the state, and a buffer that is not a tensor."""
        if held == "buffer" and isinstance(value, Tensor):
            return
        wanted = {"parameter": "an nn.Parameter", "module": "an nn.Module", "buffer": "a tensor"}[held]
        fix = f"; to write its values: {name}.copy_(...) in mt.no_grad()" if held == "parameter" else ""
        raise TypeError(
            f"{type(self).__name__}: cannot assign {type(value).__name__} as {held} {name!r}: give {wanted} or None, "
            f"or delete it first{fix}"
        )

    def __delattr__(self, name: str) -> None:
        self._kinds.pop(name, None)
        self._buffer_names.pop(name, None)
        object.__delattr__(self, name)
        Module.changes += 1

    if TYPE_CHECKING:
        __call__ = _Called()
    else:

        def __call__(self, *args, **kwargs):
            called = thread.interpreter.called
            if called is None:
                return self._call(args, kwargs)
            return called(self, lambda: self._call(args, kwargs))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for hook in self._hooks["before"]:
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        if self.quantised is None:
            result = self.forward(*args, **kwargs)
        else:
            result = self.quantised.around(self.forward, args, kwargs)
        for hook in self._hooks["after"]:
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    # Children ----------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the modules that are attributes of this one, each once."""
        return _once((name, value) for name, value in vars(self).items() if isinstance(value, Module))

    def children(self) -> Iterator[Module]:
        """Yield the modules that are attributes of this one."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Yield this module, and all below it, with names as in ``"layers.0"``."""
        every = self._tree(prefix)
        return _once(every) if remove_duplicate else every

    def _tree(self, prefix: str) -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield from value._tree(_joined(prefix, name))

    def modules(self) -> Iterator[Module]:
        """Yield this module, and all below it."""
        return (module for _, module in self.named_modules())

    def add_module(self, name: str, module: Module | None) -> None:
        """Assign a module to an attribute whose name is computed."""
        if not name or "." in name:
            raise KeyError(f"the name of a module is not empty and has no dot: {name!r}")
        if module is not None:
            self._require_module(name, module)
        setattr(self, name, module)

    def _require_module(self, name: str, module: object) -> None:
        if not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__} holds modules, and {name} is of type {type(module).__name__}; "
                "for a function, write a Module that calls it"
            )

    def get_submodule(self, target: str) -> Module:
        """Return the module of a name as in `named_modules`."""
        for name, module in self.named_modules(remove_duplicate=False):
            if name == target:
                return module
        raise AttributeError(f"{type(self).__name__} has no module {target!r}")

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of a name as in `named_parameters`."""
        place, _, name = target.rpartition(".")
        found = self.get_submodule(place)._own_parameters().get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no parameter {target!r}")
        return found

    # Parameters and buffers --------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Assign a parameter (or None) to an attribute whose name is computed."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"a parameter is a Parameter or None, not {type(param).__name__}")
        self._kinds[name] = "parameter"
        setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Assign a tensor that belongs to the module's state, and is not trained.

        Args:
            name: the name of the attribute.
            tensor: its value; None for a buffer that is not used.
            persistent: whether it is part of the state_dict.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"a buffer is a tensor or None, not {type(tensor).__name__}")
        self._buffer_names[name] = persistent
        setattr(self, name, tensor)

    def _own_parameters(self) -> dict[str, Parameter]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Parameter)}

    def _own_buffers(self, persistent: bool = False) -> dict[str, Tensor]:
        names = [name for name, kept in self._buffer_names.items() if kept or not persistent]
        return {name: value for name in names if (value := getattr(self, name, None)) is not None}

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters of this module and, unless told otherwise, of all below it, with their names."""
        found = self._named(Module._own_parameters, prefix, recurse)
        return _once(found) if remove_duplicate else found

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, as an optimiser takes them."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers of this module and, unless told otherwise, of all below it, with their names."""
        found = self._named(Module._own_buffers, prefix, recurse)
        return _once(found) if remove_duplicate else found

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _named(self, own: Callable[[Module], dict[str, T]], prefix: str, recurse: bool) -> Iterator[tuple[str, T]]:
        for place, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, value in own(module).items():
                yield _joined(place, name), value

    # State -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Return all parameters and persistent buffers by name, sharing their memory with the module.

        Example:
            >>> import minitorch as mt
            >>> list(mt.nn.Linear(2, 3).state_dict())
            ['weight', 'bias']
        """
        return {name: tensor.detach() for name, tensor in self._state().items()}

    def _state(self) -> dict[str, Tensor]:
        return {
            _joined(place, name): tensor
            for place, module in self.named_modules(remove_duplicate=False)
            for name, tensor in {**module._own_parameters(), **module._own_buffers(persistent=True)}.items()
        }

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Write values into parameters and buffers; nothing is written if a value does not fit.

        Args:
            state_dict: tensors or NumPy arrays by name.
            strict: whether the names must be the same.

        Raises:
            TypeError: if it is not a dict of tensors or arrays.
            RuntimeError: listing all names that are missing, unexpected or have another shape, and values that a module
                refuses.

        Example:
            >>> import minitorch as mt
            >>> mt.nn.Linear(2, 1).load_state_dict({"weight": mt.zeros(1, 3), "offset": mt.zeros(1)})
            Traceback (most recent call last):
            RuntimeError: the state does not fit Linear, and nothing was loaded:
              missing: bias
              unexpected: offset
              weight has the shape [1, 2] in the module and [1, 3] in the state
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict takes a dict of tensors by name, not {type(state_dict).__name__}")
        for name, value in state_dict.items():
            if not is_operand(value):
                raise TypeError(f"load_state_dict: {name!r} is a tensor or an array, not {type(value).__name__}")
        own = self._state()
        given = {name: operand(value) for name, value in state_dict.items()}
        keys = IncompatibleKeys(
            [name for name in own if name not in given], [name for name in given if name not in own]
        )
        problems = []
        if strict:
            problems += [f"missing: {name}" for name in keys.missing_keys]
            problems += [f"unexpected: {name}" for name in keys.unexpected_keys]
        problems += [
            f"{name} has the shape {list(tensor.shape)} in the module and {list(given[name].shape)} in the state"
            for name, tensor in own.items()
            if name in given and given[name].shape != tensor.shape
        ]
        for path, module in self.named_modules():
            inside = f"{path}." if path else ""
            own_part = {name.removeprefix(inside): value for name, value in given.items() if name.startswith(inside)}
            problems += [f"{inside}{problem}" for problem in module.state_problems(own_part)]
        if problems:
            head = f"the state does not fit {type(self).__name__}, and nothing was loaded:"
            raise RuntimeError("\n  ".join([head, *problems]))
        with no_grad():
            for name, tensor in own.items():
                if name in given:
                    assign(tensor, given[name], "load_state_dict")
        return keys

    def state_problems(self, given: Mapping[str, Tensor]) -> Iterable[str]:
        """Return the problems for `load_state_dict` besides names and shapes; each begins with a name.

        Args:
            given: the values for the module's own parameters and buffers, and for those of its parts, by name.
        """
        return ()

    # For the whole tree ------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with every module below this one and with this one itself, children first."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Switch every module to training (or evaluation), which `Dropout` and batch normalization look at.

        As in PyTorch, a module switches its parts, and may do more or less than that in a method of its own.
        """
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch every module to evaluation."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters are trained."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the parameters' gradients, or set them to zero."""
        zero_gradients(self.parameters(), set_to_none)

    def to(
        self,
        *target: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """Convert parameters and buffers of float types to another one, in place.

        Args:
            target: an element type, or a device, or both.
            dtype: the element type, by name.
            device: the CPU, if it is given at all.
            non_blocking: ignored, since nothing is sent anywhere.
            memory_format: ignored, since arrays are as NumPy lays them out.

        Raises:
            DeviceError: for any other device (``MT203``).

        Example:
            >>> import minitorch as mt
            >>> mt.nn.Linear(2, 2).to(mt.float64).weight.dtype
            minitorch.float64
        """
        on_cpu(device)
        wanted = wanted_type(*target, dtype)
        if wanted is None:
            return self
        if not wanted.is_floating_point:
            raise TypeError(f"a module's parameters can be of a float type only, not {wanted.name}")
        for tensor in (*self.parameters(), *self.buffers()):
            if not tensor.dtype.is_floating_point:
                continue
            for each in (tensor, tensor.grad):
                if each is not None:
                    array = concrete(each, "the conversion of a module")
                    each._value, each._view = array.astype(wanted.numpy), None
                    each._version += 1
        return self

    def float(self) -> Self:
        """Convert to float32."""
        return self.to(float32)

    def double(self) -> Self:
        """Convert to float64."""
        return self.to(float64)

    def cpu(self) -> Self:
        """Return the module itself: everything is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raise an error: there is no such device (``MT203``)."""
        on_cpu("cuda" if device is None else device)
        return self

    def half(self) -> Self:
        """Convert to float16."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """Convert to bfloat16."""
        return self.to(bfloat16)

    def register_forward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> HookHandle:
        """Call ``hook(module, args, result)`` after `forward`; a hook's result other than None replaces the result."""
        self._hooks["after"].append(hook)
        Module.changes += 1
        return HookHandle(self._hooks["after"], hook)

    def register_forward_pre_hook(self, hook: Callable[[Any, Any], Any]) -> HookHandle:
        """Call ``hook(module, args)`` before `forward`; a hook's result other than None replaces the arguments."""
        self._hooks["before"].append(hook)
        Module.changes += 1
        return HookHandle(self._hooks["before"], hook)

    # Text --------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Return the options of this kind of module, as the `repr` shows them in brackets."""
        return ""

    def __repr__(self) -> str:
        options = self.extra_repr()
        lines = [options] if options else []
        for name, value in vars(self).items():
            if isinstance(value, Module):
                lines.append(f"({name}): " + repr(value).replace("\n", "\n  "))
        if not lines or (len(lines) == 1 and options):
            return f"{type(self).__name__}({options})"
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _once(named: Iterator[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    """Yield the items, without those that came before under another name."""
    seen: set[int] = set()
    for name, value in named:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


def zero_gradients(parameters: Iterator[Tensor], set_to_none: bool) -> None:
    """Forget gradients, or set them to zero (which keeps their memory, and makes optimisers count them)."""
    for parameter in parameters:
        if set_to_none:
            set_grad(parameter, None)
        elif parameter.grad is not None:
            with no_grad():
                parameter.grad.zero_()


class Stateful:
    """Object with tensors under names that is no module, such as an optimizer.

    A class may have a method ``condition()``. A compiled function calls it before each call (with `is_counted`, once
    `Module.changes` has grown), and is traced again if the result is another one: an unfinished step has begun, or
    tensors have been replaced.
    """

    is_counted = False

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors by their names."""
        raise NotImplementedError
