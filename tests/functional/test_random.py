"""Random numbers: the right distributions, the same in every mode, and independent of each other."""

import threading
import tracemalloc

import numpy as np
import pytest

import minitorch as mt
from minitorch.functional.creation.gaussian import from_uniform
from minitorch.functional.creation.generator import gaussian, uniform
from minitorch.primitives import sources
from tests.support.helpers import replay
from tests.support.units import errors

FLOATS = [mt.float16, mt.bfloat16, mt.float32, mt.float64]


@pytest.fixture
def generator():
    return mt.Generator(42)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_uniform(dtype, generator):
    x = uniform((20000,), dtype, generator).double().numpy()
    bits = {mt.float16: 11, mt.bfloat16: 8, mt.float32: 24, mt.float64: 53}[dtype]
    assert x.min() >= 0 and x.max() < 1
    np.testing.assert_array_equal(x * 2.0**bits % 1, 0)  # multiples of 2**-bits: nothing was rounded
    counts, _ = np.histogram(x, 16, (0, 1))
    assert ((counts - 1250) ** 2 / 1250).sum() < 45  # chi-squared with 15 degrees of freedom, p = 1e-4


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_normal_moments(dtype, generator):
    x = gaussian((40000,), dtype, generator).double().numpy()
    assert np.isfinite(x).all()
    for power, expected, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((x**power).mean() - expected) < 4 * np.sqrt(spread / len(x)) + 0.01 * (dtype.itemsize == 2)


def test_draws_are_independent(generator):
    a, b = mt.randn(20000, generator=generator), mt.randn(20000, generator=generator)
    assert abs((a * b).mean().item()) < 0.03
    assert abs((a[:-1] * a[1:]).mean().item()) < 0.03
    c = mt.randn(20000, generator=mt.Generator(43))
    assert abs((a * c).mean().item()) < 0.03


def test_a_seed_repeats_the_draws():
    mt.manual_seed(7)
    first = [mt.rand(3), mt.randn(2, 2), mt.randint(10, (4,)), mt.randperm(5), mt.bernoulli(mt.full((4,), 0.5))]
    state = mt.default_generator.get_state()
    after = mt.rand(3)
    mt.manual_seed(7)
    again = [mt.rand(3), mt.randn(2, 2), mt.randint(10, (4,)), mt.randperm(5), mt.bernoulli(mt.full((4,), 0.5))]
    assert all(mt.equal(a, b) for a, b in zip(first, again, strict=True))
    mt.default_generator.set_state(state)
    assert mt.equal(mt.rand(3), after) and not mt.equal(mt.rand(3), after)
    assert mt.initial_seed() == 7
    assert mt.seed() == mt.initial_seed()
    assert mt.Generator(-1).initial_seed() == 2**64 - 1


def test_the_first_numbers_stay_as_they_are():
    assert mt.Generator(0).bits((3,)).tolist() == [488650043, 524692666, 723195832]


def test_recording_draws_the_same_numbers(generator):
    def program():
        return [
            mt.rand(3, generator=generator),
            mt.randn(2, 3, dtype=mt.float64, generator=generator),
            mt.randint(-5, 5, (6,), generator=generator),
            mt.randperm(6, generator=generator),
            generator.get_state(),
        ]

    recorded = replay(program)
    for eager, array in zip(program(), recorded, strict=True):
        np.testing.assert_array_equal(array, eager.numpy(), strict=True)


@pytest.mark.parametrize(("low", "high"), [(0, 7), (-3, 4), (0, 1), (10**6, 10**6 + 3), (-(2**40), 2**40)])
def test_randint(low, high, generator):
    x = mt.randint(low, high, (5000,), generator=generator).numpy()
    assert low <= x.min() and x.max() < high and x.dtype == np.int64
    if high - low < 10:
        counts = np.bincount(x - low)
        assert len(counts) == high - low and abs(counts - 5000 / len(counts)).max() < 150
    else:
        assert abs(x.mean()) < (high - low) / 50


def test_randint_of_a_wide_range_is_even(generator):
    # With 32 bits only, a third of these would be twice as likely as the others.
    x = mt.randint(3 * 2**29, (30000,), generator=generator).numpy() % 3
    assert abs(np.bincount(x) - 10000).max() < 400


def test_numbers_are_drawn_in_blocks_with_the_bits_of_one():
    """So that the 64-bit intermediates of many numbers take little memory: 12 times the result, if made all at once."""
    state, shape = np.array([3, 5], np.int64), (3, sources.BLOCK - 1)
    drawn = sources.random_bits.evaluate(state, shape=shape)
    whole = sources.squares(np.arange(drawn.size, dtype=np.uint64), sources.mix_key(3, 5))
    np.testing.assert_array_equal(drawn, whole.reshape(shape), strict=True)
    size = 32 * sources.BLOCK
    tracemalloc.start()
    try:
        mt.rand(size)
        assert tracemalloc.get_traced_memory()[1] < 4 * 4 * size
    finally:
        tracemalloc.stop()


def test_randint_arguments(generator):
    assert mt.randint(3, (2, 2)).shape == (2, 2) and mt.randint(1, 3, [4]).shape == (4,)
    assert mt.randint_like(mt.ones(3), 5).dtype is mt.float32
    assert mt.randint(5, 6, (2,), dtype=mt.int8).tolist() == [5, 5]
    with pytest.raises(ValueError, match="no integer"):
        mt.randint(5, 5, (2,))


def test_randperm_is_a_permutation_and_fair(generator):
    for n in (0, 1, 2, 100):
        np.testing.assert_array_equal(np.sort(mt.randperm(n, generator=generator).numpy()), np.arange(n))
    firsts = [mt.randperm(4, generator=generator).numpy()[0] for _ in range(400)]
    assert np.bincount(firsts).min() > 60


def test_bernoulli(generator):
    p = mt.tensor([0.0, 0.25, 1.0], dtype=mt.float64).expand(4000, 3)
    mean = mt.bernoulli(p, generator=generator).mean(0).numpy()
    assert mean[0] == 0 and mean[2] == 1 and abs(mean[1] - 0.25) < 0.03
    assert mt.ones(3, dtype=mt.int8).bernoulli(1.0).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="MT202"):
        mt.bernoulli(mt.ones(3, dtype=mt.int64))


def test_normal_with_mean_and_deviation(generator):
    x = mt.normal(mt.tensor([0.0, 100.0]).expand(4000, 2), mt.tensor([1.0, 5.0]), generator=generator)
    assert abs(x.mean(0)[1].item() - 100) < 0.5 and abs(x.std(0)[1].item() - 5) < 0.3
    assert mt.normal(0, 0.02, (3, 2)).shape == (3, 2)


def test_types_and_leaves():
    assert mt.rand_like(mt.ones(2, 3, dtype=mt.float16)).dtype is mt.float16
    assert mt.randn_like(mt.ones(2), dtype=mt.float64).dtype is mt.float64
    assert mt.randn(3, requires_grad=True).is_leaf
    for draw in (lambda: mt.rand(2, dtype=mt.int32), lambda: mt.randn_like(mt.arange(3))):
        with pytest.raises(TypeError, match="float type"):
            draw()


def test_threads_never_draw_the_same_numbers(generator):
    drawn = []

    def work():
        for _ in range(50):
            drawn.append(tuple(generator.bits((2,)).tolist()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 200 and generator.get_state()[1].item() == 200


MODES = {
    "interpret": lambda draw: mt.jit(draw, backend="interpret")(),
    "llvm": lambda draw: mt.jit(draw)(),
    "llvm as traced": lambda draw: mt.jit(draw, passes=())(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_draws_have_the_same_bits_in_every_mode(dtype, mode):
    """A hundred thousand of each: what a formula rounds differently here and there shows."""
    draws = {
        "rand": lambda: mt.rand(100_000, dtype=dtype),
        "bernoulli": lambda: mt.bernoulli(mt.full((100_000,), 0.3, dtype=dtype)),
        "dropout": lambda: mt.nn.functional.dropout(mt.ones(100_000, dtype=dtype), 0.4),
        "randint": lambda: mt.randint(-7, 1000, (100_000,)),
        "randperm": lambda: mt.randperm(10_000),
    }
    if dtype is not mt.float64:
        draws["randn"] = lambda: mt.randn(100_000, dtype=dtype)
    for name, draw in draws.items():
        mt.manual_seed(11)
        eager = draw()
        mt.manual_seed(11)
        again = MODES[mode](draw)
        assert eager.dtype is again.dtype and eager._value.tobytes() == again._value.tobytes(), name


def test_normal_numbers_are_those_of_the_formula(generator):
    u, turn = uniform((2, 200_000), mt.float32, generator)
    u, turn = mt.cat([u, mt.tensor([0.0, 1 - 2.0**-24, 0.5])]), mt.cat([turn, mt.tensor([0.0, 1 - 2.0**-24, 0.125])])
    found = from_uniform(u, turn, mt.float32).numpy()
    expected = np.sqrt(-2 * np.log1p(-u.double().numpy())) * np.cos(2 * np.pi * turn.double().numpy())
    assert errors(found, expected, least=1e-9).max() < 3
