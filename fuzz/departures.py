"""Where minitorch departs from PyTorch on purpose: what README's "Where it differs from PyTorch" says, as rules.

These are the only excuses that a comparison with PyTorch has.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from .program import Program, Ref

if TYPE_CHECKING:
    from .outcome import Failure

# Within a function PyTorch rounds 16-bit floats after other steps: units in the last place of the largest element.
HALF_STEPS = 8

# PyTorch has no kernel for some types, in its words; minitorch has, for every function.
TYPES = re.compile(
    r"not implemented|support|type|Long|Int|Short|Char|Half|Float|Double|Byte|Bool|integral|boolean", re.IGNORECASE
)
# No matter of types, whatever else is said; but a float type has an infinity for what is too large.
VALUES = re.compile(r"overflow|out of range|out of bounds|non-positive|negative")
INFINITE = re.compile(r"type (float|double|c10::Half|c10::BFloat16|at::Half|at::BFloat16) without overflow")


# PyTorch looks at values before it computes, or has no gradient; minitorch computes what comes of it.
# A view of what PyTorch computed with other strides is one of what is contiguous here.
CHECKS = re.compile(
    r"not differentiable|view size is not compatible|more than 1 value per channel|not have a device"
    r"|unique cannot be applied|ZeroTensor|select\(\): index|step must be nonzero|shape '\[0\]' is invalid"
    r"|Expected grad_output to have non-zero size|undefined Tensor"  # errors in the way back
)

# Where infinities meet, the order counts in which PyTorch adds up.
SUMMING = re.compile(r"conv|norm|mm$|mv$|addr|matmul|dot|linear|einsum|inner|attention|@")

# "Where PyTorch's gradient is 0/0 or inf/inf, ours may be a number."
SINGULAR = frozenset(["xlogy", "kl_div", "amax", "amin", "aminmax", "max", "min", "prod", "hypot", "copysign"])

# They copy what is not contiguous, and nothing else.
CONTIGUOUS = frozenset(["flatten", "reshape", "ravel", "contiguous", "reshape_as", "unflatten"])

# A view without elements.
EMPTY = re.compile(r"expand\(.*\b0\b")

# Their result depends on the order of ties, which PyTorch leaves open.
LARGEST = (2 - 2**-23) * 2.0**127  # float32
TIES = frozenset(["topk", "median", "argsort", "sort"])


def permissive(program: Program, error: Failure) -> bool:
    """Whether minitorch may do what PyTorch refuses."""
    if shape(program) and "at least 1D" in error.message:
        return True
    if error.kind in ("NotImplementedError", "AttributeError", "TypeError") or "ZeroDivisionError" in error.message:
        return True  # a TypeError is from PyTorch's parser of arguments, which takes numbers in fewer places
    if INFINITE.search(error.message):
        return True
    if names(program) & {"addcdiv", "addcmul"} and "without overflow" in error.message:
        return True  # PyTorch's gradient takes the factor in the type of each operand
    if "create_graph" in program.text and "does not require grad" in error.message:
        return True  # of a gradient that does not depend on the argument, PyTorch has no derivative
    if CHECKS.search(error.message):
        return True
    return bool(TYPES.search(error.message)) and not VALUES.search(error.message)


def names(program: Program) -> set[str]:
    """The plain names of what is called, in place or not."""
    return {callee.split(".")[-1].rstrip("_") for callee in program.callees}


def undefined(program: Program) -> bool:
    """Whether PyTorch leaves open what happens: a result is written over one of its own operands."""
    written = any(each.callee.endswith("_") or "=" in each.callee for each in program.body)
    if any(each.view_of for each in program.inputs) and (written or "F.batch_norm" in program.callees):
        return True
    viewed = any(each.view for each in program.inputs)
    if (written or viewed) and names(program) & {"searchsorted", "bucketize"}:  # what is not sorted any more
        return True
    products = [statement for statement in program.body if statement.callee in (".addmm_", ".baddbmm_")]
    return bool(products) and (len(program.body) > 1 or products[0].args[0] in products[0].args[1:])


def unspecified(program: Program) -> bool:
    """Whether numbers need not be PyTorch's."""
    called = {callee.split(".")[-1] for callee in program.callees} | set(" ".join(program.setup).split("."))
    # PyTorch's gradient of hardsigmoid takes a sixth as a float32 number, in every type; its gelu of infinity is NaN.
    # In float16 it loses the eps of norms.
    short = bool({"float16", "bfloat16"} & program.types or {"half", "bfloat16"} & called)
    lost = short and bool(called & {"cosine_similarity", "normalize"})
    # "A Python number beside a 16-bit float tensor is rounded": the quotient may be another whole number.
    stepped = {"floor_divide", "remainder", "fmod", "floor_divide_", "remainder_", "fmod_"}
    whole = short and bool(called & stepped or any(sign in each for each in called for sign in ("//", "%")))
    # Its second derivatives have an eps of their own, or are NaN at kinks; its convolutions skip zeros.
    second = "create_graph" in program.text
    special = any(each.kind == "special" for each in program.inputs)
    infinite = special and any(name == "gelu" or SUMMING.search(name) for name in called)
    sixths = any("ardsigmoid" in each or "ardswish" in each for each in called)
    # Its batch_norm with given statistics is one multiplication and one addition, of which the rest may cancel.
    folded = "batch_norm" in called and "float64" in program.types
    contiguous = bool(called & {"is_contiguous", "stride"})  # "what is computed is contiguous"
    # "A Python number beyond the range of the tensor's type is infinite": its logarithm is the gradient's factor.
    bases = [each.args[0] for each in program.body if "pow" in each.callee or "**" in each.callee]
    beyond = any(isinstance(base, float) and LARGEST < base < math.inf for base in bases)
    # The exponent of the gradient, one less, is rounded to even.
    exponents = [arg for each in program.body if "pow" in each.callee or "**" in each.callee for arg in each.args]
    beyond = beyond or any(isinstance(each, int) and abs(each) > 1 << 24 for each in exponents)
    beyond = beyond or any("elu" in each.callee and math.inf in each.args for each in program.body)  # infinity times 0
    return any((called & TIES, folded, contiguous, infinite, lost, whole, second, sixths, beyond))


def strict(program: Program, error: Failure) -> bool:
    """Whether minitorch may refuse what PyTorch does."""
    # "No view in which elements appear more than once, nor a part of one, can be written": the part can in PyTorch, and
    # some functions write the whole for now.
    overlapping = [*(each.view for each in program.inputs), *program.callees]
    if error.code == "MT402":  # the tape sees writes through .data, too
        # PyTorch's attention keeps a scaled copy; its kron forgets the versions of its operands
        return bool({"{}.data", "F.scaled_dot_product_attention", "mt.kron"} & set(program.callees))
    if error.code == "MT202" and any(0 in each.shape or EMPTY.search(each.view) for each in program.inputs):
        return True  # PyTorch does not look at the type if there are no elements
    if error.code == "MT201" and shape(program):  # what follows on that
        return True
    if error.code == "MT202" and "alpha" in error.message + program.text and "does not fit" in error.message:
        return True  # PyTorch takes a factor modulo the range of the type
    return error.code == "MT109" and any(name in each for each in overlapping for name in ("expand", "unfold"))


def dtype(program: Program, name: str) -> bool:
    """Whether a type may be another one."""
    if any("conv" in callee for callee in program.callees):
        return True  # of an empty batch, PyTorch's has the type of the input alone
    if "linear" in names(program) and len(program.types) > 1:
        return True  # PyTorch refuses a mixture, but for some vectors, whose result has the type of the weight
    if any(name.endswith("_loss") for name in names(program)) and len(program.types) > 1:
        return True  # "operands of two types are promoted in the losses"
    if names(program) & {"clamp", "clip"}:
        return True  # PyTorch takes a bound of no dimensions for a Python number if the other bound is one
    return "uint32" in program.types  # "mixes with signed integers, where PyTorch refuses"


def singular(program: Program) -> bool:
    """Whether a gradient may be a number where that of PyTorch is NaN: "what a factor of 0 leaves out has one of 0"."""
    left_out = any(each.kwargs.get("beta") == 0 for each in program.body)
    return bool(names(program) & SINGULAR) or left_out


def spreading(program: Program) -> bool:
    """Whether a gradient may be NaN where PyTorch's is not.

    "An infinite gradient of a convolution meets zeros", and "softplus with beta=0 is infinite".
    """
    return any("conv" in name or "softplus" in name.lower() for name in names(program))


def clamped(program: Program) -> bool:
    """Whether the gradient for NaN may be another one: "PyTorch's gradients for NaN depend on the length"."""
    return bool(names(program) & {"elu", "selu", "hardswish", "hardtanh", "relu6"})


def unordered(program: Program) -> bool:
    """Whether the order may be another one as soon as there is NaN: PyTorch's, of rows that have some, is left open."""
    return any(each.callee.endswith("unique") and "dim" in each.kwargs for each in program.body)


def overflows(program: Program) -> bool:
    """Whether a result may be infinite where PyTorch's is not: its mean beside a variance is NaN beside an infinity."""
    return bool(names(program) & {"std_mean", "var_mean"})


def carried(program: Program) -> bool:
    """Whether what overflows on the way may not in PyTorch: "carries sums and products of float32 in float64".

    Its `addcmul` may fuse the product with the sum.
    """
    return bool(names(program) & {"cumprod", "cumsum", "addcmul"})


def signed_zeros(program: Program) -> bool:
    """Whether a zero may have another sign, so that what is divided by it is the other infinity."""
    either = {"remainder", "maximum", "minimum", "amax", "amin", "max", "min"}
    return bool(names(program) & either) or any("%" in callee for callee in program.callees)


def gradient(program: Program) -> bool:
    """Whether a gradient may be another one: outside of their domain these are NaN, and their gradients need not be."""
    # PyTorch's 1 - x * x has few digits near 1, and its expm1(x) + 1 far below 0; in float64 there is no wider type
    # to tell who is right.
    inverse = {"acos", "asin", "atanh", "arccos", "arcsin", "arctanh"}
    cancelled = inverse | {"expm1"} if "float64" in program.types else set()
    return bool(names(program) & {"acosh", "arccosh", "logit", "xlogy", "kl_div", *cancelled})


def requires_grad(program: Program) -> bool:
    """Whether a result may require a gradient in one of the two alone: a comparison that is written over a tensor.

    The gradient of PyTorch's `unique` is an error, and that of `batch_norm` by its statistics, but of an empty batch.
    """
    # The number of elements that are not zero is one of the norms; the median of nothing is a number of its own.
    if names(program) & {"unique", "batch_norm", "norm", "median"}:
        return True
    return any(f".{name}_" in program.callees for name in ("eq", "ne", "lt", "le", "gt", "ge"))


def shape(program: Program) -> bool:
    """Whether a shape may be another one: PyTorch's `addmv` of a matrix without elements does not broadcast."""
    return "addmv" in names(program)


def alias(program: Program, pair: tuple[str, str]) -> bool:
    """Whether two values may share memory in one of the two alone."""
    if any(each.split(".")[-1] == "nonzero" for each in program.callees):
        return True  # PyTorch's columns of positions lie in one matrix
    # "What is computed is contiguous", so another shape of it needs no copy
    flat = {name for s in program.body if s.callee.split(".")[-1] in CONTIGUOUS for name in s.gives}
    if flat.intersection(pair):
        return True
    # "x[i] with a tensor i of no dimensions is a copy"
    return any(s.callee.startswith("{}[") and any(isinstance(arg, Ref) for arg in s.args[1:]) for s in program.body)
