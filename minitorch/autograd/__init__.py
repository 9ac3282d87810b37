"""Automatic differentiation: the tape, `backward` and `grad`, function transforms, hand-written gradients.

`minitorch.autograd.grad` is PyTorch's (of tensors), `minitorch.grad` is JAX's (of functions).
"""

from typing import TYPE_CHECKING

from ..packages import names_from
from .function import Context, Function
from .grad_mode import enable_grad, no_grad, set_grad_enabled
from .gradients import backward, detach, grad, register_hook, retain_grad

if TYPE_CHECKING:
    from minitorch_torch.functions import Variable as Variable

    from ..func import hessian as hessian
    from ..func import jacobian as jacobian
    from ..func import value_and_grad as value_and_grad
    from ..func import vjp as vjp
    from .finite_differences import gradcheck
else:
    _LATER = {
        "Variable": "minitorch_torch.functions",
        "gradcheck": f"{__name__}.finite_differences",
        **dict.fromkeys(("hessian", "jacobian", "value_and_grad", "vjp"), "minitorch.func"),
    }
    __getattr__, __dir__ = names_from(__name__, _LATER)

__all__ = [
    "Context", "Function", "backward", "detach", "enable_grad", "grad", "gradcheck", "hessian", "jacobian",
    "no_grad", "register_hook", "retain_grad", "set_grad_enabled", "value_and_grad", "vjp",
]  # fmt: skip
