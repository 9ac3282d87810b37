"""Laws of modules: what they list, what they keep, and how they are changed."""

from __future__ import annotations

import copy
import math
from typing import Any, assert_type

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import TracingError
from minitorch.nn.functions import FunctionModule


class Net(nn.Module):
    """Of every kind something."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2, bias=False))
        self.scale = nn.Parameter(mt.ones(2))
        self.register_buffer("seen", mt.zeros(()), persistent=False)

    def forward(self, x):
        return self.rest(self.norm(self.first(x))) * self.scale


NAMES = ["scale", "first.weight", "first.bias", "norm.weight", "norm.bias", "rest.2.weight"]


def test_a_module_lists_what_was_assigned():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == [
        "seen",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    ]
    assert [name for name, _ in net.named_children()] == ["first", "norm", "rest"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "norm", "rest", "rest.0", "rest.1", "rest.2"]
    assert net.get_submodule("rest.2") is net.rest[2]
    assert [name for name, _ in net.named_parameters(prefix="net", recurse=False)] == ["net.scale"]


def test_assigning_again_replaces():
    net: Any = Net()
    net.first = nn.Identity()
    net.scale = None
    assert [name for name, _ in net.named_parameters()] == NAMES[3:]
    del net.norm
    assert [name for name, _ in net.named_parameters()] == NAMES[5:]


def test_forgetting_super_init_does_not_matter():
    class Forgetful(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(2, 2)

    assert len(list(Forgetful().parameters())) == 2 and Forgetful().training


def test_shared_parameters_are_listed_once_and_saved_under_both_names():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    b.weight = a.weight
    both = nn.Sequential(a, b, a)
    assert len(both) == 3 and len(list(both.children())) == 2
    assert [name for name, _ in both.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert list(both.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"]


# State ----------------------------------------------------------------------------------------------------


def test_state_goes_from_one_module_to_another():
    a, b = Net(), Net()
    a(mt.randn(5, 3))
    assert b.load_state_dict(a.state_dict()) == ([], [])
    x = mt.randn(5, 3)
    np.testing.assert_array_equal(a.eval()(x).detach().numpy(), b.eval()(x).detach().numpy())
    assert b.norm.num_batches_tracked.item() == 1 and "seen" not in a.state_dict()


def test_state_shares_memory_and_needs_no_gradient():
    layer = nn.Linear(2, 2)
    state = layer.state_dict()
    state["bias"].fill_(7)
    assert layer.bias.tolist() == [7, 7] and not state["bias"].requires_grad


def test_loading_keeps_the_tensors_and_their_type():
    layer = nn.Linear(2, 1)
    weight = layer.weight
    layer.load_state_dict({"weight": np.array([[1.0, 2.0]]), "bias": mt.zeros(1, dtype=mt.float16)})
    assert layer.weight is weight and weight.tolist() == [[1, 2]] and weight.dtype is mt.float32


def test_what_does_not_fit_is_listed_and_nothing_is_written():
    net = Net()
    state = {name: tensor * 0 - 1 for name, tensor in net.state_dict().items()}
    state["extra"] = state.pop("scale")
    state["first.weight"] = mt.zeros(3, 4)
    before = {name: tensor.numpy().copy() for name, tensor in net.state_dict().items()}
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    for part in ("missing: scale", "unexpected: extra", "first.weight has the shape [4, 3]", "[3, 4] in the state"):
        assert part in str(error.value)
    for name, tensor in net.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    with pytest.raises(RuntimeError, match=r"first\.weight"):
        net.load_state_dict(state, strict=False)
    del state["first.weight"]
    assert net.load_state_dict(state, strict=False) == (["scale", "first.weight"], ["extra"])
    assert net.norm.bias.tolist() == [-1] * 4


def test_a_copy_is_independent():
    net = Net()
    twin = copy.deepcopy(net)
    assert repr(twin) == repr(net) and isinstance(twin.scale, nn.Parameter)
    with mt.no_grad():
        twin.scale.fill_(0)
    assert net.scale.tolist() == [1, 1]
    twin(mt.randn(4, 3)).sum().backward()
    assert net.first.weight.grad is None and twin.scale.grad is not None


# Changing the whole tree ----------------------------------------------------------------------------------


def test_train_and_eval_reach_every_module():
    net = Net()
    assert net.eval() is net and not any(module.training for module in net.modules())
    x = mt.ones(2, 3)
    np.testing.assert_array_equal(net(x).detach().numpy(), net(x).detach().numpy())
    assert net.norm.num_batches_tracked.item() == 0
    assert all(module.training for module in net.train().modules())


def test_requires_grad_zero_grad_and_apply():
    net = Net()
    net.first.requires_grad_(False)
    net(mt.randn(4, 3)).sum().backward()
    assert net.first.weight.grad is None and net.rest[2].weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert net.rest[2].weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert net.rest[2].weight.grad is None
    seen = []
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "BatchNorm1d", "ReLU", "Dropout", "Linear", "Sequential", "Net"]


def test_conversion_keeps_parameters_and_leaves_integers_alone():
    net = Net()
    weight = net.first.weight
    net(mt.randn(4, 3)).sum().backward()
    assert net.double() is net
    assert net.first.weight is weight and weight.dtype is weight.grad.dtype is mt.float64
    assert net.norm.running_var.dtype is mt.float64 and net.norm.num_batches_tracked.dtype is mt.int64
    net(mt.randn(4, 3, dtype=mt.float64)).sum().backward()
    with pytest.raises(TypeError, match="float type"):
        net.to(mt.int32)


def test_hooks_see_and_replace_arguments_and_results():
    layer = nn.Identity()
    seen = []
    first = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    second = layer.register_forward_hook(lambda module, args, result: seen.append(result.item()) or result * 10)
    assert layer(mt.tensor(1.0)).item() == 20 and seen == [2]
    first.remove()
    second.remove()
    assert layer(mt.tensor(1.0)).item() == 1


# Containers -----------------------------------------------------------------------------------------------


def test_sequential_can_be_indexed_sliced_and_named():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert net[-1] is net[2] and len(net[:2]) == 2 and net[1:][0] is net[1]
    assert list(net[1:].state_dict()) == ["2.weight", "2.bias"]
    net.append(nn.Tanh())
    net[1] = nn.GELU()
    assert [type(module).__name__ for module in net] == ["Linear", "GELU", "Linear", "Tanh"]
    net.insert(0, nn.Identity())
    del net[1]
    assert [name for name, _ in net.named_children()] == ["0", "1", "2", "3"]
    named = nn.Sequential({"in": nn.Linear(2, 3), "out": nn.Linear(3, 1)})
    assert list(named.state_dict()) == ["in.weight", "in.bias", "out.weight", "out.bias"]
    with pytest.raises(TypeError, match="function"):
        nn.Sequential(mt.exp)  # type: ignore[arg-type]


def test_module_list_and_dict():
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.extend([nn.ReLU(), nn.Linear(1, 1)])
    assert len(layers[1:]) == 2 and [name for name, _ in layers.named_parameters()][-1] == "2.bias"
    heads = nn.ModuleDict({"a": nn.Linear(1, 1)})
    heads["b"] = nn.ReLU()
    assert list(heads) == ["a", "b"] and "a" in heads and len(heads) == 2
    assert heads.pop("a") is not None and list(heads.keys()) == ["b"]
    with pytest.raises(KeyError, match="attribute"):
        heads["forward"] = nn.ReLU()
    with pytest.raises(NotImplementedError, match="forward"):
        layers(mt.ones(1))


def test_text_shows_the_tree():
    assert repr(nn.Sequential(nn.Conv2d(1, 2, 3, padding="same", groups=1), nn.LeakyReLU(0.1))) == (
        "Sequential(\n"
        "  (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=same)\n"
        "  (1): LeakyReLU(negative_slope=0.1)\n)"
    )


# Errors ---------------------------------------------------------------------------------------------------


def test_errors_say_what_was_expected():
    module: Any = nn.Module()
    for wrong, error, text in [
        (lambda: nn.Parameter([1.0]), TypeError, "tensor"),  # type: ignore[arg-type]
        (lambda: nn.Parameter(mt.tensor([1])), RuntimeError, "int64"),
        (lambda: module.register_parameter("w", mt.ones(1)), TypeError, "Parameter"),
        (lambda: module.register_buffer("b", 3), TypeError, "tensor"),
        (lambda: module(1), NotImplementedError, "forward"),
        (lambda: module.missing, AttributeError, "missing"),
        (lambda: nn.ReLU()(mt.ones(1), mt.ones(1)), TypeError, "1 tensors"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "groups"),
        (lambda: nn.BatchNorm2d(3)(mt.ones(2, 4, 5, 5)), ValueError, "BatchNorm2d"),
        (lambda: nn.Embedding(3, 2, padding_idx=5), ValueError, "padding_idx"),
        (lambda: nn.init.kaiming_normal_(mt.ones(3)), ValueError, "bias"),
        (lambda: nn.init.calculate_gain("step"), ValueError, "step"),
    ]:
        with pytest.raises(error, match=text):
            wrong()


# Layers ---------------------------------------------------------------------------------------------------


def test_initial_signals_keep_their_variance():
    mt.manual_seed(0)
    x = mt.randn(200, 300)
    for scheme, activation in [
        (lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu"), nn.functional.relu),
        (lambda w: nn.init.kaiming_uniform_(w, nonlinearity="linear"), lambda y: y),
        (nn.init.xavier_normal_, lambda y: y),
    ]:
        y = x
        for _ in range(5):
            y = activation(y @ scheme(mt.empty(300, 300)).T)
        assert (y * y).mean().item() == pytest.approx(1.0, rel=0.4)


def test_batch_norm_learns_the_statistics_that_it_uses_in_evaluation():
    mt.manual_seed(0)
    norm = nn.BatchNorm1d(2, momentum=None)
    batches = [mt.randn(50, 2) * 3 + 5 for _ in range(4)]
    for batch in batches:
        norm(batch)
    means = np.stack([batch.numpy().mean(0) for batch in batches])
    np.testing.assert_allclose(norm.running_mean.numpy(), means.mean(0), rtol=1e-5)
    y = norm.eval()(mt.cat(batches))
    assert y.mean().item() == pytest.approx(0, abs=0.05) and y.std().item() == pytest.approx(1, abs=0.05)


AFFINE = {"weight", "eps", "reset_parameters", "forward", "extra_repr"}
SHAPED = AFFINE | {"normalized_shape", "elementwise_affine"}
STATISTICS = {"running_mean", "running_var", "num_batches_tracked", "track_running_stats", "reset_running_stats"}
NORMS: dict[str, tuple[tuple[int, ...], set[str]]] = {  # arguments, and what PyTorch's class has beside a module's
    "LayerNorm": ((3,), SHAPED | {"bias"}),
    "RMSNorm": ((3,), SHAPED),
    "GroupNorm": ((1, 3), AFFINE | {"bias", "num_groups", "num_channels", "affine"}),
    "BatchNorm1d": ((3,), AFFINE | STATISTICS | {"bias", "num_features", "momentum", "affine"}),
    "BatchNorm2d": ((3,), AFFINE | STATISTICS | {"bias", "num_features", "momentum", "affine"}),
}


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_has_what_pytorchs_has_and_starts_anew_from_all_of_it(name):
    arguments, names = NORMS[name]
    kind: Any = getattr(nn, name)
    of_modules = {"forward", "extra_repr"}  # overridden
    for layer in (
        kind(*arguments),
        kind(*arguments, **{("affine" if "affine" in names else "elementwise_affine"): False}),
    ):
        has = {each for each in dir(layer) if not each.startswith("_")}
        assert has - {*dir(nn.Module())} == names - of_modules
        assert of_modules <= {each for base in kind.__mro__[:-2] for each in vars(base)}
    layer, new = kind(*arguments), kind(*arguments)
    for each in layer.state_dict().values():
        each.fill_(7)
    layer.reset_parameters()
    for key, value in layer.state_dict().items():
        assert value.tolist() == new.state_dict()[key].tolist(), key


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_of_ones_own_is_complete_when_its_parameters_are_first_reset(name):
    arguments, names = NORMS[name]

    class Own(getattr(nn, name)):  # type: ignore[misc]
        def reset_parameters(self):
            self.seen = {each for each in names if hasattr(self, each)}
            super().reset_parameters()

    assert Own(*arguments).seen == names
    with pytest.raises((TypeError, ValueError), match=r"^Own|^GroupNorm|\bGroupNorm"):
        Own(*arguments[:-1], "x")


def test_parameters_and_vectors():
    layer = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    nn.utils.vector_to_parameters(vector.detach() * 0 + 1, layer.parameters())
    assert layer.weight.sum().item() == 6
    with pytest.raises(ValueError, match="8"):
        nn.utils.vector_to_parameters(mt.ones(9), layer.parameters())


def test_clipped_gradients_have_the_norm_asked_for():
    net = nn.Linear(4, 4)
    (net(mt.ones(2, 4)) * 100).sum().backward()
    total = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    again = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    assert total.item() > 1 and again.item() == pytest.approx(1, rel=1e-4)
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0


# Weights computed from others --------------------------------------------------------------------------------------

NORMED = [(nn.utils.weight_norm, nn.utils.remove_weight_norm), (nn.utils.spectral_norm, nn.utils.remove_spectral_norm)]


@pytest.mark.parametrize(("norm", "undo"), NORMED)
@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_a_normalised_layer_trains_alike_in_every_mode_and_becomes_ordinary_again(norm, undo, kind):
    layers = [norm(kind(3, 4, 2)) for _ in range(2)]
    layers[1].load_state_dict({name: each.clone() for name, each in layers[0].state_dict().items()})
    compiled = mt.jit(lambda x: layers[1](x).square().sum())
    for _ in range(2):
        x = mt.randn(2, 3, 4, 4)
        layers[0](x).square().sum().backward()
        compiled(x).backward()
    for one, other in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-3, atol=1e-5)
    for one, other in zip(layers[0].state_dict().values(), layers[1].state_dict().values(), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4)
    wanted = layers[0].eval()(x)
    assert list(undo(layers[0]).state_dict()) == ["bias", "weight"]
    assert type(layers[0]) is kind
    np.testing.assert_allclose(layers[0](x).detach().numpy(), wanted.detach().numpy(), rtol=1e-5)


def test_the_largest_singular_value_of_a_spectrally_normalised_weight_is_one():
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4))
    assert np.linalg.norm(layer.weight.detach().numpy(), 2) == pytest.approx(1, rel=1e-2)
    layer.weight = mt.ones(4, 5)
    np.testing.assert_allclose(layer.parametrizations.weight.original.detach().numpy(), np.ones((4, 5)))


# In a graph -----------------------------------------------------------------------------------------------


def test_a_jitted_module_writes_its_running_statistics():
    eager, traced = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    step = mt.jit(lambda x: traced(x))
    for seed in range(3):
        mt.manual_seed(seed)
        x = mt.randn(6, 3)
        np.testing.assert_allclose(step(x).detach().numpy(), eager(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    for a, b in zip(traced.buffers(), eager.buffers(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_modules_made_inside_a_graph_have_concrete_parameters():
    with mt.Graph() as graph:
        layer = nn.Linear(2, 2)
        x = mt.placeholder((1, 2), mt.float32, name="x")
        y = layer(x)
    layer.load_state_dict({"weight": np.eye(2, dtype="float32"), "bias": np.ones(2, dtype="float32")})
    result = mt.Session(graph).run(y, {"x": np.array([[3.0, 4.0]], dtype="float32")})
    np.testing.assert_array_equal(np.asarray(result), [[4, 5]])


def test_modules_made_inside_a_traced_function_are_an_error():
    with pytest.raises(TracingError, match=r"MT105(.|\n)*outside of the function"):
        mt.jit(lambda x: nn.Linear(2, 2)(x))(mt.ones(1, 2))


def test_modules_made_inside_a_lazy_block_have_values():
    with mt.lazy():
        layer = nn.Linear(2, 2, bias=False)
        optimizer = mt.optim.SGD(layer.parameters(), lr=0.5)
        layer(mt.ones(1, 2)).sum().backward()
        before = layer.weight.detach().clone()
        optimizer.step()
    np.testing.assert_allclose(layer.weight.detach().numpy(), before.numpy() - 0.5, rtol=1e-6)


def test_dropout_in_a_graph_draws_anew_each_time():
    drop = mt.jit(nn.Dropout(0.5))
    mt.manual_seed(0)
    first, second = drop(mt.ones(64)), drop(mt.ones(64))
    assert not bool((first == second).all()) and {*first.tolist()} == {0.0, 2.0}
    mt.manual_seed(0)
    assert drop(mt.ones(64)).tolist() == first.tolist() == (mt.manual_seed(0), nn.Dropout(0.5)(mt.ones(64)))[1].tolist()
    assert math.isclose(first.mean().item(), 1, abs_tol=0.5)


def test_layers_without_elements_are_made_as_in_pytorch() -> None:
    assert mt.nn.Linear(0, 4)(mt.ones(2, 0)).shape == (2, 4)
    assert mt.nn.Linear(4, 0)(mt.ones(2, 4)).shape == (2, 0)
    assert mt.nn.Conv2d(0, 4, 3).weight.shape == (4, 0, 3, 3)
    assert mt.nn.init.xavier_normal_(mt.ones(0, 0)).shape == (0, 0)


# --- modules of functions ---------------------------------------------------------------------------------------------

OPTIONS: dict[str, tuple[Any, ...]] = {
    "Unflatten": (1, (1, 2)),
    **dict.fromkeys(("Softmax", "Softmin", "LogSoftmax"), (1,)),
    **dict.fromkeys(("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"), (1,)),
    **dict.fromkeys(("PixelShuffle", "PixelUnshuffle", "LocalResponseNorm", "Upsample"), (2,)),
    "Threshold": (0.5, 1.0),
    "Fold": (3, 2),
    "Unfold": (2,),
    **dict.fromkeys(("ConstantPad1d", "ConstantPad2d"), (1, 2.0)),
}
SHAPES = {"1d": (2, 2, 4), "2d": (2, 2, 4, 4)}
SHAPES |= dict.fromkeys(
    ("PixelShuffle", "PixelUnshuffle", "LocalResponseNorm", "Upsample", "Softmax2d", "Unfold"), (2, 4, 4, 4)
)
SHAPES["Fold"] = (1, 4, 4)
OF_FUNCTIONS = [
    each
    for each in (getattr(nn, name) for name in nn.__all__)
    if isinstance(each, type) and issubclass(each, FunctionModule) and each is not FunctionModule
]


@pytest.mark.parametrize("kind", OF_FUNCTIONS, ids=lambda kind: kind.__name__)
def test_a_module_of_a_function_is_compiled_alone_and_takes_its_tensors_by_name(kind):
    name = kind.__name__
    module = kind(*OPTIONS.get(name, (2,) if "Pool" in name else (1,) if "Pad" in name else ())).eval()
    shape = SHAPES.get(name, SHAPES.get(name[-2:], (2, 2)))
    tensors = [mt.rand(shape) * 0.5 + 0.25 for _ in module.inputs.parameters]
    if name in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"):
        tensors[1] = mt.tensor([0, 1])
    if name == "CTCLoss":
        tensors[0] = mt.rand(3, 2, 2).log_softmax(-1)
        tensors[1:] = [mt.tensor([[1], [1]]), mt.tensor([3, 2]), mt.tensor([1, 1])]
    if name == "MultiLabelMarginLoss":
        tensors[1] = mt.tensor([[0, -1], [1, -1]])
    if name == "CosineEmbeddingLoss":
        tensors[2] = mt.tensor([1, -1])
    wanted = module(*tensors)
    named = dict(zip(module.inputs.parameters, tensors, strict=True))
    for found in (module(**named), mt.jit(module)(*tensors), mt.jit(module)(**named)):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)
    with pytest.raises(TypeError, match=name):
        module(*tensors[1:], wrong=tensors[0])


@pytest.mark.parametrize("name", ["weight", "bias", "absent", "layer", "average"])
@pytest.mark.parametrize("value", ["parameter", "module", "tensor", "number", "none"])
@pytest.mark.parametrize("after", ["at first", "after None", "after del"])
def test_what_is_assigned_to_a_part_of_the_state_is_part_of_it_or_refused(name, value, after):
    """The table is PyTorch's: a part keeps its kind, also while it is None, until it is deleted."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(mt.zeros(2))
            self.bias = nn.Parameter(mt.zeros(2))
            self.register_parameter("absent", None)
            self.layer = nn.Linear(1, 1)
            self.register_buffer("average", mt.zeros(2))

    given: dict[str, Any] = {"tensor": mt.ones(2), "number": 3, "none": None}
    given |= {"parameter": nn.Parameter(mt.ones(2)), "module": nn.Linear(1, 1)}
    model = Model()
    if after == "after None":
        setattr(model, name, None)
    if after == "after del":
        delattr(model, name)
    kind = {"layer": "module", "average": "tensor"}.get(name, "parameter")
    fits = after == "after del" or value in (kind, "none", "parameter")
    if not fits:
        with pytest.raises(TypeError, match=f"Model: cannot assign .* as .* '{name}'"):
            setattr(model, name, given[value])
        return
    setattr(model, name, given[value])
    assert getattr(model, name) is given[value]
    is_state = value in ("parameter", "module") or (value == "tensor" and name == "average" and after != "after del")
    assert any(key.split(".")[0] == name for key in model.state_dict()) == is_state


def test_a_layer_without_bias_takes_no_plain_tensor_for_one():
    for layer in (nn.Linear(2, 2, bias=False), nn.Conv1d(2, 2, 1, bias=False), nn.LayerNorm(2, bias=False)):
        with pytest.raises(TypeError, match="as parameter 'bias'"):
            setattr(layer, "bias", mt.zeros(2))  # noqa: B010
        layer.bias = nn.Parameter(mt.zeros(2))
        assert "bias" in layer.state_dict()


def test_a_call_has_the_type_of_forward():
    """Checked by mypy: at run time, `assert_type` does nothing."""
    layer, x = nn.Linear(3, 4).eval(), mt.ones(2, 3)
    assert_type(layer(x), mt.Tensor)
    assert_type(nn.MSELoss()(x, x), mt.Tensor)
    assert_type(mt.jit(layer)(x), mt.Tensor)
    assert_type(mt.freeze(layer, x)(x), mt.Tensor)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3, 3)])
def test_orthogonal_weights_have_one_singular_value(shape):
    weight = nn.init.orthogonal_(mt.empty(*shape), gain=2.0).reshape(shape[0], -1)
    np.testing.assert_allclose(np.linalg.svd(weight.numpy())[1], 2.0, rtol=1e-5)


def test_truncated_normal_weights_have_the_deviation_that_is_left():
    weight = nn.init.trunc_normal_(mt.nn.Linear(200, 200).weight, std=0.1, a=-0.1, b=0.2)
    assert weight.requires_grad and -0.1 <= weight.min().item() <= weight.max().item() <= 0.2
    assert weight.std().item() == pytest.approx(0.0721, rel=0.03) and weight.mean().item() == pytest.approx(
        0.023, abs=2e-3
    )
    with pytest.raises(ValueError, match="hardly any number"):
        nn.init.trunc_normal_(weight, a=50.0, b=51.0)
    np.testing.assert_array_equal(nn.init.eye_(mt.empty(2, 3)).numpy(), np.eye(2, 3))
