"""Single steps of recurrent networks: `RNNCell`, `LSTMCell` and `GRUCell`, for loops of one's own.

`Cell` is the computation, given the two products; `RNNCellBase` has the parameters and multiplies by them.
"""

from __future__ import annotations

import math
from typing import Any

from ...dtypes import DType
from ...errors import ShapeError
from ...functional.creation.creation import zeros
from ...functional.movement.shaping import squeeze, unsqueeze
from ...functional.options import require_tensor, whole
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..layers import parameter
from ..module import Module
from ..parameter import Parameter
from .networks import mode_of
from .recurrence import KINDS, checked_state


class Cell(Module):
    """Step of a recurrent network, given the products of the input and of the hidden state.

    Attributes:
        mode: a row of `KINDS`.
        input_size, hidden_size, bias: as of `LSTMCell`.
    """

    mode: str
    input_size: int
    hidden_size: int
    bias: bool

    def product(self, x: Tensor, place: str) -> Tensor:
        """Return [N, features] times the weight of a place, ``"ih"`` or ``"hh"``, plus its bias."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The name of the cell in messages."""
        return f"{self.mode.partition('_')[0]}Cell"

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Make one step.

        Args:
            input: [N, input_size], or [input_size].
            hx: the state, [N, hidden_size] (or [hidden_size]); of an LSTM a pair of them. Zeros by default.

        Returns:
            The next state, like `hx`.

        Raises:
            ShapeError: if input or state do not fit (``MT201``).
        """
        require_tensor(self.title, "input", input)
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                "MT201",
                f"{self.title}: the input is {input.spec}, and not of {self.input_size} features",
                fix="its shape is [batch, features], or [features]; for a whole sequence, use "
                f"nn.{self.title.removesuffix('Cell')}",
            )
        kind, shape = KINDS[self.mode], (*input.shape[:-1], self.hidden_size)
        if hx is None:
            state = (zeros(shape, dtype=input.dtype),) * kind.states
        else:
            why = "it has hidden_size features for each row of the input"
            state = checked_state(self.title, hx, dict.fromkeys(("hx", "h c")[kind.states - 1].split(), shape), why)
        batched = input.ndim == 2
        x, state = (input, state) if batched else (unsqueeze(input, 0), tuple([unsqueeze(each, 0) for each in state]))
        state = kind.step(self.product(x, "ih"), self.product(state[0], "hh"), state)
        state = state if batched else tuple([squeeze(each, 0) for each in state])
        return state if kind.states > 1 else state[0]

    def extra_repr(self) -> str:
        """Return the options as text; those with a default only if they differ from it."""
        bias = "" if self.bias else ", bias=False"
        return f"{self.input_size}, {self.hidden_size}{bias}" + ", nonlinearity=relu" * (self.mode == "RNN_RELU")


class RNNCellBase(Cell):
    """Base class of the cells: their options and parameters, under PyTorch's names. A subclass is a row of `KINDS`.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: whether the two products have biases.
        dtype: the type of the parameters.
        device: the CPU, if it is given at all.
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: DType | None = None, device: Any = None
    ) -> None:
        super().__init__()
        self.bias = bool(bias)
        self.input_size = whole(f"{self.title}: input_size", input_size)
        self.hidden_size = whole(f"{self.title}: hidden_size", hidden_size)
        gates = KINDS[self.mode].gates * hidden_size
        self.weight_ih = parameter(gates, input_size, dtype=dtype, device=device)
        self.weight_hh = parameter(gates, hidden_size, dtype=dtype, device=device)
        self.bias_ih = parameter(gates, dtype=dtype, device=device) if bias else None
        self.bias_hh = parameter(gates, dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values: uniform between plus and minus ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for each in self.parameters():
            init.uniform_(each, -bound, bound)

    def product(self, x: Tensor, place: str) -> Tensor:
        """Apply `F.linear` with the parameters of a place."""
        return F.linear(x, getattr(self, f"weight_{place}"), getattr(self, f"bias_{place}"))


class RNNCell(RNNCellBase):
    """Step of a plain network: ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or with relu for tanh.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.RNNCell(3, 4)(mt.zeros(2, 3), mt.zeros(2, 4)).shape
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        self.mode = mode_of("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype, device)
        self.nonlinearity = nonlinearity


class LSTMCell(RNNCellBase):
    """Step of an LSTM, as `LSTM` takes it at each time; the state is a pair ``h, c``.

    Example:
        >>> import minitorch as mt
        >>> h, c = mt.nn.LSTMCell(3, 4)(mt.zeros(2, 3))
        >>> h.shape, c.shape
        ((2, 4), (2, 4))
    """

    mode = "LSTM"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: DType | None = None, device: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype, device)


class GRUCell(RNNCellBase):
    """Step of a GRU, as `GRU` takes it at each time.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.GRUCell(3, 4)(mt.zeros(3)).shape
        (4,)
    """

    mode = "GRU"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: DType | None = None, device: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype, device)
