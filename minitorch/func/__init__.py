"""Transforms from function to function, as in `torch.func`: gradients, pullbacks, Jacobians, Hessians."""

from .transforms import grad, hessian, jacobian, value_and_grad, vjp

__all__ = ["grad", "hessian", "jacobian", "value_and_grad", "vjp"]
