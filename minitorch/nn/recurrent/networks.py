"""Recurrent layers over sequences: `RNN`, `LSTM` and `GRU`, which multiply by their parameters."""

from __future__ import annotations

import math
from typing import Any

from ...dtypes import DType
from ...errors import DTypeError
from ...functional.options import probability, whole
from ...interpreters import current_handler
from ...ir import warn_user
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..layers import parameter
from .recurrence import KINDS
from .sequences import Recurrent


class RNNBase(Recurrent):
    """Base class of the layers: their options and parameters, under PyTorch's names. A subclass is a row of `KINDS`.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: how many layers, each of which reads the hidden states of the one before.
        bias: whether the two products of a step have biases.
        batch_first: whether the batch is the first axis of inputs and outputs, and not the second.
        dropout: the probability with which the input of each layer but the first is dropped in training.
        bidirectional: whether a second recurrence runs from the end to the beginning.
        proj_size: features that the hidden state of an LSTM is projected to after each step; 0 for none.
        dtype: the type of the parameters.
        device: the CPU, if it is given at all.

    Raises:
        TypeError: for options of another type.
        ValueError: for sizes that are not above 0, a `proj_size` that is not below `hidden_size`, or a dropout that is
            no probability.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = positive(f"{self.title}: input_size", input_size)
        self.hidden_size = positive(f"{self.title}: hidden_size", hidden_size)
        self.num_layers = positive(f"{self.title}: num_layers", num_layers)
        self.bias = truth(f"{self.title}: bias", bias)
        self.batch_first = truth(f"{self.title}: batch_first", batch_first)
        if isinstance(dropout, bool):
            raise TypeError(f"{self.title}: dropout is a number, not a bool: {dropout}")
        self.dropout = probability(f"{self.title}: dropout", dropout)
        self.bidirectional = bool(bidirectional)
        self.proj_size = whole(f"{self.title}: proj_size", proj_size)
        if self.proj_size >= self.hidden_size:
            raise ValueError(f"{self.title}: proj_size={proj_size} is not below hidden_size={hidden_size}")
        if self.dropout and num_layers == 1:
            problem = f"dropout={dropout} drops nothing: it is applied between layers, and num_layers is 1"
            warn_user(f"{self.title}: {problem}", UserWarning)
        gates, directions = KINDS[self.mode].gates * hidden_size, 2 if bidirectional else 1
        for layer, suffixes in enumerate(self.suffixes):
            features = self.sizes[0] * directions if layer else input_size
            for suffix in suffixes:
                shapes: dict[str, tuple[int, ...]] = {
                    f"weight_ih{suffix}": (gates, features),
                    f"weight_hh{suffix}": (gates, self.sizes[0]),
                }
                if bias:
                    shapes |= {f"bias_ih{suffix}": (gates,), f"bias_hh{suffix}": (gates,)}
                if proj_size:
                    shapes[f"weight_hr{suffix}"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name, parameter(*shape, dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values: uniform between plus and minus ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size)
        for each in self.parameters():
            init.uniform_(each, -bound, bound)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Parameters of each layer and direction."""
        suffixes = [suffix for layer in self.suffixes for suffix in layer]
        named = self._own_parameters()
        return [[each for name, each in named.items() if name.endswith(suffix)] for suffix in suffixes]

    def flatten_parameters(self) -> None:
        """Do nothing: it arranges memory for CUDA's library, and programs written for that call it."""

    def product(self, x: Tensor, place: str) -> Tensor:
        """Apply `F.linear` with the parameters of a place.

        Raises:
            DTypeError: if the types differ (``MT202``).
        """
        weight: Tensor = getattr(self, f"weight_{place}")
        if x.dtype is not weight.dtype and current_handler() is None:
            raise DTypeError(
                "MT202",
                f"{self.title}: the input or the state is {x.spec}, and the weights are {weight.dtype.name}",
                fix=f"convert it, x.to(minitorch.{weight.dtype.name}), or the layer, "
                f"layer.to(minitorch.{x.dtype.name})",
            )
        return F.linear(x, weight, getattr(self, f"bias_{place}", None))


def positive(what: str, value: Any) -> int:
    """Check an int above 0, and return it.

    Raises:
        TypeError: if it is not an int.
        ValueError: if it is not above 0.
    """
    if whole(what, value) == 0:
        raise ValueError(f"{what} is at least 1, not 0")
    return int(value)


def truth(what: str, value: Any) -> bool:
    """Check a bool given as an option, and return it.

    Raises:
        TypeError: for anything else, such as the number that belongs to the option before.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{what} is a bool, not {type(value).__name__}: {value!r}")
    return value


_NONLINEARITIES = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}


def mode_of(name: str, nonlinearity: str) -> str:
    """Return the kind of a plain network.

    Raises:
        ValueError: for another nonlinearity than tanh and relu.
    """
    if nonlinearity not in _NONLINEARITIES:
        raise ValueError(f'{name}: nonlinearity is "tanh" or "relu", not {nonlinearity!r}')
    return _NONLINEARITIES[nonlinearity]


class RNN(RNNBase):
    """Plain recurrent layers (Elman, 1990): ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)`` at each time.

    Options, shapes and results are those of `LSTM`, except that the state is one tensor, and nothing is projected.

    Example:
        >>> import minitorch as mt
        >>> output, h_n = mt.nn.RNN(3, 4, nonlinearity="relu")(mt.zeros(5, 2, 3))
        >>> output.shape, h_n.shape
        ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        self.mode = mode_of("RNN", nonlinearity)
        options = num_layers, bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, *options, dtype=dtype, device=device)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory layers (Hochreiter and Schmidhuber, 1997), as `torch.nn.LSTM`.

    At each time, with the gates i, f, g and o in this order along the first axis of weights and biases:

        i, f, o = sigmoid(W_ih x + b_ih + W_hh h + b_hh),    g = tanh(...)
        c = f * c + i * g,    h = o * tanh(c)

    The input is [T, N, input_size], or [N, T, input_size] with `batch_first`, or [T, input_size]; or sequences
    of several lengths, packed. The results are ``output, (h_n, c_n)``: the hidden states of the last layer at all
    times, and the last states, [num_layers * directions, N, size], that of the backward direction after the other's.

    The parameters are ``weight_ih_l0`` [4 * hidden_size, input_size], ``weight_hh_l0`` [4 * hidden_size, size],
    ``bias_ih_l0`` and ``bias_hh_l0`` [4 * hidden_size], with `proj_size` also ``weight_hr_l0`` [proj_size, hidden_size]
    (arXiv:1402.1128), then those of ``_l0_reverse``, of ``_l1``, ... A `state_dict` of PyTorch's LSTM fits.

    A recorded graph has all steps, one after another, and one of 1000 steps takes a while to compile
    (`minitorch.nn.recurrent.recurrence` has figures).

    Example:
        >>> import minitorch as mt
        >>> output, (h_n, c_n) = mt.nn.LSTM(3, 4, num_layers=2, bidirectional=True)(mt.zeros(5, 2, 3))
        >>> output.shape, h_n.shape, c_n.shape
        ((5, 2, 8), (4, 2, 4), (4, 2, 4))
    """

    mode = "LSTM"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        options = num_layers, bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, *options, proj_size=proj_size, dtype=dtype, device=device)


class GRU(RNNBase):
    """Gated recurrent unit layers (Cho and others, arXiv:1406.1078), as `torch.nn.GRU`.

    At each time, with the gates r, z and n in this order along the first axis of weights and biases:

        r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh)
        n = tanh(W_in x + b_in + r * (W_hn h + b_hn)),    h = (1 - z) * n + z * h

    Options, shapes and results are those of `LSTM`, except that the state is one tensor, and nothing is projected.

    Example:
        >>> import minitorch as mt
        >>> output, h_n = mt.nn.GRU(3, 4, batch_first=True)(mt.zeros(2, 5, 3))
        >>> output.shape, h_n.shape
        ((2, 5, 4), (1, 2, 4))
    """

    mode = "GRU"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        options = num_layers, bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, *options, dtype=dtype, device=device)
