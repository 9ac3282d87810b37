"""The error function, which NumPy lacks.

float64 goes through Python's `math.erf`, element by element: exact and slow. The shorter types use two polynomials,
evaluated in float64, which after rounding to float32 are within 1 unit in the last place everywhere. The coefficients
are Chebyshev fits of ``erf(sqrt(t)) / sqrt(t)`` on [0, 4] and of ``x * exp(x*x) * erfc(x)`` on [2, 4.2].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_exact = np.frompyfunc(math.erf, 1, 1)

# In rising powers of t = x*x.
_NEAR = (
    1.1283791670955028,
    -0.37612638903073103,
    0.11283791668887633,
    -0.026866170491607524,
    0.005223977026344994,
    -0.0008548312902696681,
    0.00012055115025084286,
    -1.4923333685828574e-05,
    1.6444613563841374e-06,
    -1.6270115948966254e-07,
    1.442479716491216e-08,
    -1.1175440930964833e-09,
    7.069314833980977e-11,
    -3.1727557643817316e-12,
    7.338380647819103e-14,
)
# In rising powers of |x|.
_FAR = (
    0.046718604562216215,
    0.7912317613678258,
    -0.686808687537039,
    0.40556241475192506,
    -0.17157689558959996,
    0.05274813996432812,
    -0.011714523073042533,
    0.001833416117059834,
    -0.00019195754209399576,
    1.2072404194281029e-05,
    -3.449396295099413e-07,
)
_SPLIT, _END = 2.0, 4.2  # beyond _END, erf is 1 in float32


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    result = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result *= x
        result += coefficient
    return result


def erf(x: Array) -> Array:
    """Return the error function of each element, in the type of `x`."""
    x = np.asarray(x)
    if x.dtype == np.float64:
        return np.asarray(_exact(x), dtype=np.float64)
    wide = x.astype(np.float64)
    size = np.abs(wide)
    near = wide * _polynomial(np.minimum(wide * wide, _SPLIT**2), _NEAR)
    tail = np.clip(size, _SPLIT, _END)
    far = np.copysign(1 - np.exp(-size * size) * _polynomial(tail, _FAR) / tail, wide)
    return np.where(size < _SPLIT, near, far).astype(x.dtype)
