"""How fast models are that no longer change: frozen, in bfloat16, in int8, with int4 weights, beside others' ways.

`models` says what is computed: as a program in the vocabulary of `benchmarks.libraries`, and as a module that PyTorch
and minitorch build alike. `onnx_graphs` writes the same model as an ONNX graph. `libraries` has the ways to run a
model, `contenders` who takes part, `report` the bounds. The measuring itself is that of `make bench`: processes of
their own, interleaved rounds, ratios within a round.
"""

from .contenders import CONTENDERS
from .models import CASES

__all__ = ["CASES", "CONTENDERS"]
