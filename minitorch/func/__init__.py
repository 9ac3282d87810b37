"""Transforms of functions, as in `torch.func`: `vmap`, derivatives, Jacobians, and modules as functions."""

from .jacobians import hessian, jacfwd, jacobian, jacrev
from .mapping import vmap
from .modules import functional_call, stack_module_state
from .transforms import grad, grad_and_value, jvp, value_and_grad, vjp

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacobian", "jacrev", "jvp",
    "stack_module_state", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
