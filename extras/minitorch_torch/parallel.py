"""`minitorch.nn.parallel`: the wrappers of modules for several devices, of which there is one."""

from __future__ import annotations

from typing import Any

from minitorch.nn import Module


class DataParallel(Module):
    """A module as it is, under PyTorch's name for copies on several devices: `module` has the parameters.

    Example:
        >>> import minitorch as mt
        >>> model = mt.nn.DataParallel(mt.nn.Linear(2, 1))
        >>> model(mt.ones(3, 2)).shape, list(model.state_dict())
        ((3, 1), ['module.weight', 'module.bias'])
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns."""
        return self.module(*args, **kwargs)


class DistributedDataParallel(DataParallel):
    """A module as it is, under PyTorch's name for copies in several processes."""
