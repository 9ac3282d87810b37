"""The record of the weights that PyTorch folds batch normalization into is that of the installed PyTorch.

``python -m tests.inference.test_torch_folding`` writes it again.
"""

from typing import Any

import numpy as np
import pytest

from tests.support.records import read, write

# Constructors of torch.nn with their arguments, and the number of features that are normalized.
MODELS: dict[str, tuple[tuple[str, tuple[int, ...], dict[str, Any]], tuple[str, int]]] = {
    "Conv1d": (("Conv1d", (3, 4, 3), {}), ("BatchNorm1d", 4)),
    "Conv2d": (("Conv2d", (3, 4, 3), {}), ("BatchNorm2d", 4)),
    "Conv2d without bias": (("Conv2d", (3, 4, 2), {"bias": False}), ("BatchNorm2d", 4)),
    "depthwise Conv2d": (("Conv2d", (4, 4, 3), {"groups": 4}), ("BatchNorm2d", 4)),
    "grouped Conv2d": (("Conv2d", (4, 6, 2), {"groups": 2}), ("BatchNorm2d", 6)),
    "Linear": (("Linear", (7, 5), {}), ("BatchNorm1d", 5)),
}


def numbers(name, shape, seed):
    """Parameters and statistics by name, the same for both libraries."""
    random = np.random.default_rng([seed, sum(map(ord, name))])
    values = random.normal(size=shape)
    return (np.abs(values) * 3 + 1e-3 if "var" in name else values).astype(np.float32)


def answers(torch):
    """The folded weight and bias of each model: by FX from a traced model, by the function from a linear layer."""
    from torch.fx.experimental.optimization import fuse
    from torch.nn.utils.fusion import fuse_linear_bn_eval

    found = {}
    for seed, (name, ((layer, arguments, options), (norm, features))) in enumerate(MODELS.items()):
        model = torch.nn.Sequential(getattr(torch.nn, layer)(*arguments, **options), getattr(torch.nn, norm)(features))
        with torch.no_grad():
            for key, tensor in model.state_dict().items():
                if tensor.dtype.is_floating_point:
                    tensor.copy_(torch.from_numpy(numbers(key, tuple(tensor.shape), seed)))
        model.eval()
        folded = fuse_linear_bn_eval(*model) if layer == "Linear" else dict(fuse(model).named_modules())["0"]
        found[name] = {
            "weight": folded.weight.detach().flatten().tolist(),
            "bias": folded.bias.detach().flatten().tolist(),
        }
    return found


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")  # by FX's own module
def test_the_record_is_pytorchs():
    torch = pytest.importorskip("torch")
    assert read("folding") == answers(torch)


if __name__ == "__main__":
    import torch

    write("folding", answers(torch))
