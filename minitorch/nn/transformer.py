"""Multi-head attention and the transformer's encoder and decoder (Vaswani et al., arXiv:1706.03762).

Parameters have PyTorch's names and shapes. In masks of bools True hides a place, as PyTorch has it here, and not in
`scaled_dot_product_attention`; masks of floats are added to the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from ..dtypes import DType, bool_
from ..functional.creation.creation import full
from ..functional.movement.arranging import triu
from ..functional.movement.gathering import masked_fill
from ..functional.movement.parts import chunk
from ..functional.movement.shaping import reshape, squeeze, transpose, unsqueeze
from ..functional.reducing.statistics import mean
from ..tensor import Tensor
from . import functional as F
from . import init
from .containers import ModuleList
from .functional.attention import attend
from .functions import Dropout
from .layers import Linear, parameter
from .module import Module
from .norms import LayerNorm
from .parameter import Parameter


class MultiheadAttention(Module):
    """Attention of several heads, each over a part of the features, between linear maps.

    Example:
        >>> import minitorch as mt
        >>> x = mt.zeros(2, 5, 8)
        >>> out, weights = mt.nn.MultiheadAttention(8, num_heads=2, batch_first=True)(x, x, x)
        >>> out.shape, weights.shape
        ((2, 5, 8), (2, 5, 5))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter
    k_proj_weight: Parameter
    v_proj_weight: Parameter

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        if add_bias_kv or add_zero_attn:
            raise NotImplementedError("MultiheadAttention: add_bias_kv and add_zero_attn are not available")
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: {embed_dim} features do not divide into {num_heads} heads")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        shapes = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        packed = set(shapes.values()) == {embed_dim}
        for name, width in shapes.items():
            own = None if packed else parameter(embed_dim, width, dtype=dtype, device=device)
            self.register_parameter(name, own)
        whole = parameter(3 * embed_dim, embed_dim, dtype=dtype, device=device) if packed else None
        self.register_parameter("in_proj_weight", whole)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim, dtype=dtype, device=device) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype, device=device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values: those of Glorot and Bengio, and no biases."""
        for name, each in self.named_parameters(recurse=False):
            init.xavier_uniform_(each) if name.endswith("weight") else init.zeros_(each)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        bias = self.in_proj_bias
        if self.in_proj_weight is not None and query is key is value:
            return list(chunk(F.linear(query, self.in_proj_weight, bias), 3, -1))
        if self.in_proj_weight is not None:
            weights: tuple[Tensor, ...] = chunk(self.in_proj_weight, 3)
        else:
            weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        biases = (None,) * 3 if bias is None else chunk(bias, 3)
        return [F.linear(*each) for each in zip((query, key, value), weights, biases, strict=True)]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to the keys.

        Args:
            query: [queries, batch, embed_dim], with the batch first if `batch_first`, or without a batch.
            key: [keys, batch, kdim], likewise.
            value: [keys, batch, vdim], likewise.
            key_padding_mask: [batch, keys], of the keys that are hidden from all queries.
            need_weights: whether the weights are returned, too.
            attn_mask: [queries, keys] or [batch * num_heads, queries, keys].
            average_attn_weights: whether their mean over the heads is returned, or those of each head.
            is_causal: says that `attn_mask` hides later keys; the mask is what counts.

        Returns:
            The result in the layout of the query, and the weights [batch, queries, keys] or None.
        """
        if is_causal and attn_mask is None:
            raise RuntimeError("MultiheadAttention: is_causal=True needs the attn_mask that it describes")
        given, batched = (query, key, value), query.ndim == 3
        if not batched:
            laid = [unsqueeze(each, 0) for each in given]
        elif self.batch_first:
            laid = list(given)
        else:
            laid = [transpose(each, 0, 1) for each in given]
        if query is key is value:
            laid = [laid[0]] * 3
        batch, count = laid[0].shape[:2]
        q, k, v = [
            transpose(reshape(each, (batch, each.shape[1], self.num_heads, self.head_dim)), 1, 2)
            for each in self._projected(laid[0], laid[1], laid[2])
        ]
        masks = []
        if key_padding_mask is not None:
            masks.append(reshape(key_padding_mask, (batch, 1, 1, k.shape[2])))
        if attn_mask is not None:
            heads = attn_mask.ndim == 3
            masks.append(reshape(attn_mask, (batch, self.num_heads, count, k.shape[2])) if heads else attn_mask)
        mask: Tensor | None = None
        if masks and all(each.dtype is bool_ for each in masks):
            mask = ~(masks[0] | masks[-1])
        elif masks:
            added = [_added(each, q.dtype) for each in masks]
            mask = added[0] if len(added) == 1 else added[0] + added[1]
        out, weights = attend(q, k, v, mask, self.dropout if self.training else 0.0, need_weights)
        out = self.out_proj(reshape(transpose(out, 1, 2), (batch, count, self.embed_dim)))
        out = squeeze(out, 0) if not batched else out if self.batch_first else transpose(out, 0, 1)
        if weights is not None:
            weights = mean(weights, dim=1) if average_attn_weights else weights
            weights = weights if batched else squeeze(weights, 0)
        return out, weights


def _added(mask: Tensor, dtype: DType) -> Tensor:
    return masked_fill(full(mask.shape, 0.0, dtype=dtype), mask, -math.inf) if mask.dtype is bool_ else mask


class _Layer(Module):
    """Layer of a transformer: attentions and two linear maps, each with a residual connection and a norm."""

    attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        kind: dict[str, Any] = {"bias": bias, "dtype": dtype, "device": device}
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **kind))
        self.linear1, self.dropout = Linear(d_model, dim_feedforward, **kind), Dropout(dropout)
        self.linear2, self.norm_first = Linear(dim_feedforward, d_model, **kind), norm_first
        for at in range(1, len(self.attentions) + 2):
            setattr(self, f"norm{at}", LayerNorm(d_model, layer_norm_eps, **kind))
        for at in range(1, len(self.attentions) + 2):
            setattr(self, f"dropout{at}", Dropout(dropout))
        if activation not in ("relu", "gelu") and not callable(activation):
            raise RuntimeError(f"{type(self).__name__}: activation is 'relu', 'gelu' or a function, not {activation!r}")
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation

    def _added(self, at: int, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """Add a block's result to its input, and normalize the input before or the sum after."""
        norm, dropout = getattr(self, f"norm{at}"), getattr(self, f"dropout{at}")
        result: Tensor = x + dropout(block(norm(x))) if self.norm_first else norm(x + dropout(block(x)))
        return result

    def _attend(self, name: str, memory: Tensor | None, *masks: Tensor | None) -> Callable[[Tensor], Tensor]:
        def block(x: Tensor) -> Tensor:
            seen = x if memory is None else memory
            out: Tensor = getattr(self, name)(x, seen, seen, masks[1], need_weights=False, attn_mask=masks[0])[0]
            return out

        return block

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear maps, each added to its input and normalized.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.TransformerEncoderLayer(8, nhead=2, batch_first=True)(mt.zeros(2, 5, 8)).shape
        (2, 5, 8)
    """

    attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the encoded source, of its shape; masks as in `MultiheadAttention`."""
        x = self._added(1, src, self._attend("self_attn", None, src_mask, src_key_padding_mask))
        return self._added(2, x, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's result, and two linear maps, each added to its input and normalized.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.TransformerDecoderLayer(8, nhead=2, batch_first=True)
        >>> layer(mt.zeros(2, 3, 8), mt.zeros(2, 5, 8)).shape
        (2, 3, 8)
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded target, of its shape; masks as in `MultiheadAttention`."""
        x = self._added(1, tgt, self._attend("self_attn", None, tgt_mask, tgt_key_padding_mask))
        x = self._added(2, x, self._attend("multihead_attn", memory, memory_mask, memory_key_padding_mask))
        return self._added(3, x, self._feed_forward)


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other, and a norm if one is given.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.TransformerEncoderLayer(8, nhead=2, batch_first=True)
        >>> mt.nn.TransformerEncoder(layer, num_layers=2)(mt.zeros(2, 5, 8)).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the encoded source, of its shape."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other, and a norm if one is given.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.TransformerDecoderLayer(8, nhead=2, batch_first=True)
        >>> mt.nn.TransformerDecoder(layer, num_layers=2)(mt.zeros(2, 3, 8), mt.zeros(2, 5, 8)).shape
        (2, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded target, of its shape."""
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder of a source, and decoder of a target that attends to it.

    Example:
        >>> import minitorch as mt
        >>> model = mt.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
        >>> model(mt.zeros(2, 5, 8), mt.zeros(2, 3, 8)).shape
        (2, 3, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: DType | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        kind: dict[str, Any] = {"bias": bias, "dtype": dtype, "device": device}
        options: Any = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            encoder = TransformerEncoderLayer(*options, **kind)
            norm = LayerNorm(d_model, layer_norm_eps, **kind)
            self.encoder = TransformerEncoder(encoder, num_encoder_layers, norm)
        if custom_decoder is None:
            decoder = TransformerDecoderLayer(*options, **kind)
            norm = LayerNorm(d_model, layer_norm_eps, **kind)
            self.decoder = TransformerDecoder(decoder, num_decoder_layers, norm)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for each in self.parameters():
            if each.ndim > 1:
                init.xavier_uniform_(each)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded target, of its shape."""
        assert self.encoder is not None and self.decoder is not None
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        return self.decoder(tgt, memory, *masks)  # type: ignore[no-any-return]

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: DType | None = None) -> Tensor:
        """Return a mask to be added, -inf where a key is later than the query."""
        return triu(full((sz, sz), -math.inf, dtype=dtype, device=device), 1)
