"""Solutions of exercise 10, operators from primitives."""

from minitorch_grading.harness.primitives import (
    absolute,
    equal,
    exp,
    log,
    log1p,
    maximum,
    sqrt,
    tanh,
    total,
    where,
)
from tests.grading.wrong_solutions import right, wrong

# --- hard_swish -------------------------------------------------------------------------------------------------


@right("primitives.hard_swish")
def turns_a_maximum_round(x):
    return x * -maximum(-maximum(x + 3.0, 0.0), -6.0) / 6.0


@wrong("primitives.hard_swish", says="it is six times too large", points=0)
def forgets_to_divide(x):
    factor = maximum(x + 3.0, 0.0)
    return x * where(factor < 6.0, factor, 6.0)


@wrong("primitives.hard_swish", says="that is the factor: multiply it by x", points=0)
def returns_the_factor(x):
    factor = maximum(x + 3.0, 0.0)
    return where(factor < 6.0, factor, 6.0) / 6.0


@wrong("primitives.hard_swish", says="above 3 the factor stays 1", points=0)
def has_no_upper_end(x):
    return x * maximum(x + 3.0, 0.0) / 6.0


@wrong("primitives.hard_swish", says="so it has no `if`", points=0)
def asks_with_an_if(x):
    if x < -3.0:
        return 0.0 * x
    return x


@wrong("primitives.hard_swish", says="use the functions of this notebook", points=0)
def calls_numpy(x):
    import numpy as np

    return x * np.minimum(np.maximum(x + 3.0, 0.0), 6.0) / 6.0


# --- asinh ------------------------------------------------------------------------------------------------------


@right("primitives.asinh")
def multiplies_by_the_ratio(x):
    a = maximum(x, -x)
    root = sqrt(1.0 + a * a)
    return x / a * log1p(a + a * (a / (root + 1.0)))


@wrong("primitives.asinh", says="let the logarithm see the absolute value", points=4)
def takes_the_formula(x):
    return log(x + sqrt(x * x + 1.0))


@wrong("primitives.asinh", says="log1p(t) is log(1 + t) without that sum", points=11)
def turns_the_sign_alone(x):
    a = absolute(x)
    found = log(a + sqrt(a * a + 1.0))
    return where(x < 0.0, -found, found)


@wrong("primitives.asinh", says="without a difference", points=11)
def subtracts_one_from_the_root(x):
    a = absolute(x)
    found = log1p(a + (sqrt(a * a + 1.0) - 1.0) + 0.0 * a)
    return where(x < 0.0, -found, found)


@wrong("primitives.asinh", says=", for x = ", points=0)
def forgets_the_sign(x):
    a = absolute(x)
    return log1p(a + a * a / (1.0 + sqrt(a * a + 1.0)))


# --- layer_norm -------------------------------------------------------------------------------------------------


@right("primitives.layer_norm")
def multiplies_by_a_share(x):
    share = 1.0 / x.shape[-1]
    centred = x - share * total(x, keepdim=True)
    return centred * (1.0 / sqrt(1e-5 + share * total(centred * centred, keepdim=True)))


@wrong("primitives.layer_norm", says="take the mean of the squared differences", points=15)
def repairs_the_broadcast_only(x):
    n = x.shape[-1]
    mean = total(x, keepdim=True) / n
    variance = total(x * x, keepdim=True) / n - mean * mean
    return (x - mean) / sqrt(variance + 1e-5)


@wrong("primitives.layer_norm", says="do not go together: dimensions are aligned on the right", points=0)
def repairs_the_variance_only(x):
    n = x.shape[-1]
    centred = x - total(x) / n
    return centred / sqrt(total(centred * centred) / n + 1e-5)


@wrong("primitives.layer_norm", says="each column has the mean of a row", points=0)
def leaves_the_dimension_out(x):
    n = x.shape[-1]
    mean = total(x) / n
    variance = total(x * x) / n - mean * mean
    return (x - mean) / sqrt(variance + 1e-5)


@wrong("primitives.layer_norm", says="should be", points=0)
def divides_by_the_variance(x):
    n = x.shape[-1]
    centred = x - total(x, keepdim=True) / n
    return centred / (total(centred * centred, keepdim=True) / n + 1e-5)


@wrong("primitives.layer_norm", says="1e-5 is added to the variance", points=15)
def forgets_what_is_added(x):
    n = x.shape[-1]
    centred = x - total(x, keepdim=True) / n
    return centred / sqrt(total(centred * centred, keepdim=True) / n)


@wrong("primitives.layer_norm", says="before the root", points=15)
def adds_it_after_the_root(x):
    n = x.shape[-1]
    centred = x - total(x, keepdim=True) / n
    return centred / (sqrt(total(centred * centred, keepdim=True) / n) + 1e-5)


# --- lengths ----------------------------------------------------------------------------------------------------


@right("primitives.lengths")
def adds_one_where_it_is_zero(x):
    squares = total(x * x)
    extra = where(squares > 0.0, 0.0, 1.0)
    return sqrt(squares + extra) - extra


@wrong("primitives.lengths", says="Let the root see another number there", points=8)
def chooses_after_the_root(x):
    squares = total(x * x)
    return where(equal(squares, 0.0), 0.0, sqrt(squares))


@wrong("primitives.lengths", says="Let the root see another number there", points=8)
def does_not_think_of_zeros(x):
    return sqrt(total(x * x))


@wrong("primitives.lengths", says="the length of a row of zeros is 0", points=8)
def adds_something_small(x):
    return sqrt(total(x * x) + 1e-6)


@wrong("primitives.lengths", says="however small", points=8)
def adds_something_tiny(x):
    return sqrt(total(x * x) + 1e-14)


@right("primitives.lengths")
def bounds_what_the_root_sees(x):
    squares = total(x * x)
    return where(equal(squares, 0.0), 0.0, sqrt(maximum(squares, 1e-30)))


@wrong("primitives.lengths", says="that is the square of the length", points=0)
def forgets_the_root(x):
    return total(x * x)


@wrong("primitives.lengths", says="the value: its shape is", points=0)
def keeps_the_dimension(x):
    squares = total(x * x, keepdim=True)
    is_zero = equal(squares, 0.0)
    return where(is_zero, 0.0, sqrt(where(is_zero, 1.0, squares)))


# --- mish -------------------------------------------------------------------------------------------------------


@right("primitives.mish")
def divides_into_the_smaller(x):
    small = where(x > 20.0, 20.0, x)
    return tanh(log1p(exp(small))) * x


@wrong("primitives.mish", says="yours: 8 primitives; best known: 6", points=24)
def puts_the_stable_parts_together(x):
    return x * tanh(maximum(x, 0.0) + log1p(exp(-absolute(x))))


@wrong("primitives.mish", says="yours: 7 primitives; best known: 6", points=27)
def bounds_with_a_maximum(x):
    return x * tanh(log1p(exp(-maximum(-x, -20.0))))


@wrong("primitives.mish", says="the way back multiplied 0 by infinity", points=12)
def is_short_and_overflows(x):
    return x * tanh(log1p(exp(x)))


@wrong("primitives.mish", says="also in a branch of `where` that is not taken", points=12)
def chooses_after_the_overflow(x):
    return x * where(x < 20.0, tanh(log1p(exp(x))), 1.0)


@wrong("primitives.mish", says="which is none of the operations of this notebook", points=0)
def takes_a_primitive_of_the_engine(x):
    from minitorch import primitives as P
    from minitorch.graph import apply
    from minitorch_grading.harness.primitives import Value

    return x * tanh(Value(apply(P.log1p, apply(P.expm1, where(x < 20.0, x, 20.0).node))) + 1.0)


@wrong("primitives.mish", says="1 + exp(-20) is 1 in float32", points=6)
def loses_the_digits_below_zero(x):
    return x * tanh(log(1.0 + exp(where(x < 20.0, x, 20.0))))


@wrong("primitives.mish", says="infinity over infinity is NaN", points=6)
def divides_infinities(x):
    e = exp(x)
    n = e * (e + 2.0)
    return x * n / (n + 2.0)
