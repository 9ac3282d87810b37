"""Lazy layers: after their first call they are the ordinary ones, with the same numbers."""

import pytest

import minitorch as mt
from minitorch import errors, nn

LAYERS = {
    "Linear": (4, (3,), (2, 4)),
    "Conv1d": (4, (8, 3), (2, 4, 5)),
    "Conv2d": (4, (8, 3), (2, 4, 5, 5)),
    "ConvTranspose1d": (4, (8, 3), (2, 4, 5)),
    "ConvTranspose2d": (4, (8, 3), (2, 4, 5, 5)),
    "BatchNorm1d": (4, (), (2, 4)),
    "BatchNorm2d": (4, (), (2, 4, 5, 5)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_lazy_layer_becomes_the_ordinary_one(name):
    size, args, shape = LAYERS[name]
    x = mt.randn(shape)
    mt.manual_seed(1)
    ordinary = getattr(nn, name)(size, *args)
    expected = ordinary(x)
    lazy = getattr(nn, f"Lazy{name}")(*args)
    held = list(lazy.parameters())
    mt.manual_seed(1)
    assert lazy(x).tolist() == expected.tolist()
    assert type(lazy) is type(ordinary) and repr(lazy) == repr(ordinary)
    assert list(lazy.state_dict()) == list(ordinary.state_dict())
    assert all(mine is known for mine, known in zip(lazy.parameters(), held, strict=True))
    assert mt.jit(lazy)(x).shape == expected.shape


@pytest.mark.parametrize("kind", [mt.optim.SGD, mt.optim.Adam, mt.optim.NAdam])
def test_an_optimizer_may_hold_the_parameters_before_they_are_made(kind):
    def losses(lazy):
        mt.manual_seed(0)
        first = nn.Linear(4, 3)
        net = nn.Sequential(first, nn.Tanh(), nn.LazyLinear(1, bias=False) if lazy else nn.Linear(3, 1, bias=False))
        optimizer, found = kind(net.parameters(), lr=0.1), []
        for _ in range(3):
            loss = (net(mt.ones(2, 4)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        assert len({float(state["step"]) for state in optimizer.state.values() if "step" in state}) < 2
        return found

    assert losses(lazy=True) == losses(lazy=False)


def test_a_lazy_layer_is_not_made_while_a_function_is_traced():
    with pytest.raises(errors.TracingError, match="MT105"):
        mt.jit(nn.LazyLinear(2))(mt.ones(1, 2))


def test_options_and_types_are_kept():
    assert nn.LazyBatchNorm1d(affine=False)(mt.ones(3, 2)).shape == (3, 2)
    layer = nn.LazyLinear(2).double()
    assert layer(mt.ones(1, 3, dtype=mt.float64)).dtype is next(iter(layer.parameters())).dtype is mt.float64
