"""`Generator`, a counter-based stream of random numbers, and the draws behind all random tensors.

The state of a generator is a tensor of two numbers, the seed and the number of the next draw. A draw is the primitive
`random_bits`, a function of that state, followed by an in-place addition of 1 to the number of the draw. So a traced
function takes the state in and gives the new one back, like any other tensor that it changes, and draws the
same numbers as eager code.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ... import primitives as P
from ...dtypes import DType
from ...interpreters import concrete
from ...ir import Shape
from ...packages import load
from ...tensor import Tensor
from ..devices import on_cpu
from ..inplace import assign
from ..operands import like, wrapped
from ..options import real, require_tensor
from .data import tensor

__all__ = ["Generator", "default_generator", "initial_seed", "manual_seed", "seed"]


class Generator:
    """Stream of random numbers.

    Args:
        seed: the start of the stream; a random one by default.
        device: the CPU, if it is given at all.

    Raises:
        DeviceError: for any other device (``MT203``).

    Example:
        >>> import minitorch as mt
        >>> generator = mt.Generator().manual_seed(1)
        >>> a = mt.rand(2, generator=generator)
        >>> b = mt.rand(2, generator=generator.manual_seed(1))
        >>> mt.equal(a, b)
        True
    """

    def __init__(self, seed: int | None = None, *, device: Any = None) -> None:
        on_cpu(device)
        self._state = tensor([0, 0])
        self._draws = 0
        self._lock = threading.Lock()
        self.manual_seed(secrets.randbits(63) if seed is None else seed)

    def __reduce__(self) -> tuple[Any, ...]:
        """Reduce to a copy that goes on from the same state, independently."""
        return _continued, (type(self), self._state.detach().clone(), self._draws)

    def manual_seed(self, seed: int) -> Generator:
        """Start again from a seed, of which the lower 64 bits count; return the generator itself.

        Raises:
            TypeError: if the seed is not a number.
        """
        real("manual_seed: the seed", seed)
        return self.set_state(tensor([wrapped(int(seed), dtypes.int64), 0]))

    def seed(self) -> int:
        """Start again from a random seed, and return it."""
        seed = secrets.randbits(63)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed that the generator was started from."""
        return int(concrete(self._state, "initial_seed()")[0]) % 2**64

    def get_state(self) -> Tensor:
        """Return a copy of the state, an int64 tensor: the seed, and the number of draws made."""
        return P.cast(self._state, dtype=dtypes.int64)

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state returned by `get_state`.

        Raises:
            TypeError: if it is not a tensor of integers.
            ValueError: if there are not two of them.
        """
        self._loading(new_state)()
        return self

    def _loading(self, new_state: Tensor) -> Callable[[], None]:
        """Check a state, and return the function that writes it."""
        require_tensor("set_state", "the state", new_state)
        if new_state.dtype.category != "int":
            raise TypeError(f"set_state: the state of a generator is a tensor of integers, not of {new_state.dtype}")
        if new_state.shape != (2,):
            raise ValueError(f"set_state: the state of a generator has the shape [2], not {list(new_state.shape)}")

        def write() -> None:
            with self._lock:
                assign(self._state, new_state, "set_state")

        return write

    def draws(self) -> int:
        """Return a number that grows with every draw, in any mode."""
        return self._draws

    def bits(self, shape: Shape) -> Tensor:
        """Draw 32 random bits per element, as uint32: one draw."""
        with self._lock:
            self._draws += 1
            bits = P.random_bits(self._state, shape=shape)
            zero_one = P.iota(size=2, dtype=dtypes.int64)
            assign(self._state, P.add(self._state, zero_one), "a draw")
        return bits


def _continued(kind: type[Generator], state: Tensor, draws: int) -> Generator:
    """Return a generator that goes on from a state."""
    generator = kind(0).set_state(state)
    generator._draws = draws
    return generator


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the default generator again from a seed; from there on, every mode draws the same numbers.

    They are the same to the bit, except for normal numbers of float64, which differ in the last digits.

    Example:
        >>> import minitorch as mt
        >>> _ = mt.manual_seed(0)
        >>> x = mt.randn(3)
        >>> _ = mt.manual_seed(0)
        >>> mt.equal(x, mt.randn(3))
        True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the default generator again from a random seed, and return it.

    Example:
        >>> import minitorch as mt
        >>> number = mt.seed()
        >>> number == mt.initial_seed()
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the default generator was started from.

    Example:
        >>> import minitorch as mt
        >>> _ = mt.manual_seed(3)
        >>> mt.initial_seed()
        3
    """
    return default_generator.initial_seed()


# Draws ---------------------------------------------------------------------------------------------------------

# The bits of precision of each type: a uniform number is a multiple of 2**-bits, so that none is rounded up to 1.
_PRECISION: dict[DType, int] = {dtypes.bfloat16: 8, dtypes.float16: 11, dtypes.float32: 24}


def unpacked(x: Tensor) -> list[Tensor]:
    """Return the slices of a tensor along its first dimension."""
    steps, rest = (1,) * x.ndim, x.shape[1:]
    starts = [(place,) + (0,) * len(rest) for place in range(x.shape[0])]
    parts = [P.slice_(x, start=start, stop=(start[0] + 1, *rest), step=steps) for start in starts]
    return [P.reshape(part, shape=rest) for part in parts]


def uniform(shape: Shape, dtype: DType, generator: Generator | None = None) -> Tensor:
    """Return uniform numbers in [0, 1), exact multiples of a power of two, as for `rand` and dropout."""
    generator = generator or default_generator
    if dtype in _PRECISION:
        bits, kept = generator.bits(shape), _PRECISION[dtype]
        whole = P.cast(P.shift_right(bits, like(32 - kept, bits)), dtype=dtype)
        return P.mul(whole, like(2.0**-kept, whole))
    high, low = unpacked(generator.bits((2, *shape)))  # 27 and 26 bits
    high = P.cast(P.shift_right(high, like(5, high)), dtype=dtype)
    low = P.cast(P.shift_right(low, like(6, low)), dtype=dtype)
    return P.mul(P.add(P.mul(high, like(2.0**26, high)), low), like(2.0**-53, high))


def gaussian(shape: Shape, dtype: DType, generator: Generator | None = None) -> Tensor:
    """Return normal numbers, see `minitorch.functional.creation.gaussian`."""
    wide = dtype if dtype is dtypes.float64 else dtypes.float32
    u, turn = unpacked(uniform((2, *shape), wide, generator))
    result: Tensor = load("minitorch.functional.creation.gaussian").from_uniform(u, turn, dtype)
    return result


def integers(count: int, shape: Shape, generator: Generator) -> Tensor:
    """Return random int64 numbers in [0, count)."""
    high, low = [P.cast(word, dtype=dtypes.int64) for word in unpacked(generator.bits((2, *shape)))]
    if count > 2**31:
        return P.remainder(joined(high, low), like(count, high))
    by, half = like(count, high), like(32, high)
    return P.shift_right(P.add(P.mul(high, by), P.shift_right(P.mul(low, by), half)), half)


def joined(high: Tensor, low: Tensor) -> Tensor:
    """Join two words into 63 random bits."""
    return P.bitwise_xor(P.shift_left(high, like(31, high)), low)
