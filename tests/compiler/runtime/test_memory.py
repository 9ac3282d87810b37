"""No two live buffers overlap; no two arrays share memory; memory comes back when the last view of it goes."""

from __future__ import annotations

import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitorch.compiler.kernels.arena import ALIGNMENT, Lifetime, aligned, lower_bound, plan
from minitorch.compiler.runtime.memory_pool import Pool, address

MEGABYTE = 1 << 20


@st.composite
def schedules(draw: st.DrawFn) -> list[Lifetime]:
    buffers: list[Lifetime] = []
    for _ in range(draw(st.integers(0, 24))):
        first = draw(st.integers(0, 8))
        dying = [i for i, buffer in enumerate(buffers) if buffer.last == first]
        hints = draw(st.lists(st.sampled_from(dying), unique=True, max_size=2)) if dying else []
        size = draw(st.sampled_from([0, 1, 64, 65, 100, 1000, 4096]) | st.integers(0, 5000))
        buffers.append(Lifetime(size, first, first + draw(st.integers(0, 4)), tuple(hints)))
    return buffers


@settings(max_examples=400, deadline=None)
@given(schedules())
def test_live_buffers_do_not_overlap(buffers: list[Lifetime]) -> None:
    result = plan(buffers)
    assert lower_bound(buffers) <= result.size <= sum(aligned(buffer.size) for buffer in buffers)
    places = list(zip(buffers, result.offsets, strict=True))
    assert all(offset % ALIGNMENT == 0 and offset + buffer.size <= result.size for buffer, offset in places)
    for i, (one, here) in enumerate(places):
        for j, (other, there) in enumerate(places[:i]):
            both_live = one.first <= other.last and other.first <= one.last
            apart = here + one.size <= there or there + other.size <= here
            takes_over = here == there and (
                (j in one.in_place and other.last == one.first) or (i in other.in_place and one.last == other.first)
            )
            assert not both_live or apart or takes_over


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_the_lower_bound_is_the_most_that_is_live(rows: list[tuple[int, int, int]]) -> None:
    buffers = [Lifetime(size, first, first + length) for size, first, length in rows]
    live = [sum(aligned(b.size) for b in buffers if b.first <= step <= b.last) for step in range(20)]
    assert lower_bound(buffers) == max(live)


def test_a_chain_in_place_needs_one_buffer() -> None:
    chain = [Lifetime(1000, step, step + 1, (step - 1,) if step else ()) for step in range(20)]
    assert plan(chain).size == lower_bound(chain) == aligned(1000)
    assert plan([Lifetime(1000, step, step + 1) for step in range(20)]).size == 2 * aligned(1000)


def test_only_one_buffer_takes_over_a_place() -> None:
    result = plan([Lifetime(64, 0, 1), Lifetime(64, 1, 2, (0,)), Lifetime(64, 1, 2, (0,))])
    assert sorted(result.offsets[1:]) == [0, 64]


def test_a_hint_does_not_free_a_buffer_that_is_still_read() -> None:
    assert len(set(plan([Lifetime(64, 0, 2), Lifetime(64, 1, 2, (0,))]).offsets)) == 2


def test_plans_of_typical_graphs_are_tight() -> None:
    # Activations that live until their gradient, with a scratch buffer at each step: sizes as in a small network.
    sizes = [784, 512, 512, 256, 128, 10]
    buffers = [Lifetime(256 * size, i, 2 * len(sizes) - i) for i, size in enumerate(sizes)]
    buffers += [Lifetime(256 * size, 2 * len(sizes) - i, 2 * len(sizes) - i + 1) for i, size in enumerate(sizes)]
    result = plan(buffers)
    assert result.size <= 1.1 * lower_bound(buffers)


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (1024, 1025)])
def test_arrays_are_plain_arrays(shape: tuple[int, ...], dtype: type) -> None:
    array = Pool().array(shape, dtype)
    assert type(array) is np.ndarray and array.shape == shape and array.dtype == dtype
    assert array.flags.c_contiguous and array.flags.writeable
    array[...] = 1
    assert (array == 1).all()


def test_memory_comes_back_when_the_last_view_goes() -> None:
    pool = Pool()
    array = pool.array((MEGABYTE,), np.float32)
    place = address(array)
    assert place % ALIGNMENT == 0 and address(array[1:]) == place + 4
    view = array.reshape(-1, 4)[5:].T
    del array
    gc.collect()
    other = pool.array((MEGABYTE,), np.float32)
    assert pool.held == 0 and not np.shares_memory(other, view)
    del view
    assert pool.held == 4 * MEGABYTE
    assert address(pool.array((MEGABYTE,), np.int32)) == place


def test_no_python_runs_when_memory_comes_back() -> None:
    """So an interrupt cannot come there, where it would be printed and lost."""
    pool = Pool(limit=4 * MEGABYTE)
    arrays = [pool.array((size * MEGABYTE,), np.uint8) for size in (1, 2, 3, 3, 5)]
    called: list[str] = []
    sys.setprofile(lambda frame, event, argument: called.append(event))
    del arrays[:]
    sys.setprofile(None)
    assert set(called) <= {"c_call"}
    pool.array((5 * MEGABYTE,), np.uint8)
    assert pool.held == 3 * MEGABYTE  # the oldest went first


def test_the_pool_keeps_no_more_than_its_limit() -> None:
    pool = Pool(limit=10 * MEGABYTE)
    arrays = [pool.array((size * MEGABYTE,), np.uint8) for size in (1, 2, 3, 4, 5, 20)]
    while arrays:
        arrays.pop(0)
        pool.array((6 * MEGABYTE,), np.uint8)
        assert 0 < pool.held <= pool.limit + 6 * MEGABYTE


def test_small_arrays_are_left_to_numpy() -> None:
    pool = Pool()
    pool.array((100,), np.float32)
    assert pool.held == 0 and pool.array((100,), np.float32).flags.owndata


def test_more_memory_than_there_is() -> None:
    with pytest.raises(MemoryError):
        Pool().take(1 << 60)


def test_a_block_belongs_to_one_call() -> None:
    pool, calls, in_use = Pool(), 200, set()
    lock = threading.Lock()

    def call(number: int) -> int:
        memory = pool.array((MEGABYTE,), np.int64)
        place = address(memory)
        with lock:
            assert place not in in_use
            in_use.add(place)
        memory[:] = number
        assert (memory == number).all()
        with lock:
            in_use.remove(place)
        return place

    with ThreadPoolExecutor(4) as executor:
        assert len(set(executor.map(call, range(calls)))) <= 8
    assert pool.held <= 8 * 8 * MEGABYTE


def test_arrays_may_be_dropped_anywhere() -> None:
    pool = Pool(limit=8 * MEGABYTE)

    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        kept: list[np.ndarray] = []
        for step in range(200):
            array = pool.array((int(generator.integers(1, 3)) * MEGABYTE,), np.uint8)
            array[:: 1 << 16] = step % 251
            kept.append(array)
            kept[0] = kept[0][:]  # a view instead
            if len(kept) > 2:
                cycle: list[object] = [kept.pop(0)]
                cycle.append(cycle)  # for the garbage collector
            assert all((one[:: 1 << 16] == one[0]).all() for one in kept)

    with ThreadPoolExecutor(3) as executor:
        list(executor.map(work, range(3)))
    gc.collect()
    pool.array((MEGABYTE,), np.uint8)
    assert 0 < pool.held <= pool.limit + MEGABYTE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore")  # whoever else has threads in this process (JAX) warns of forks
def test_a_forked_process_has_memory_of_its_own() -> None:
    pool = Pool()
    array = pool.array((MEGABYTE,), np.uint8)
    array[:] = 1
    child = os.fork()
    if child == 0:
        array[:] = 2
        del array
        os._exit(0 if pool.array((MEGABYTE,), np.uint8) is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (array == 1).all()


def test_addresses() -> None:
    array = np.arange(10.0)
    for view in (array, array[3:], array[::-1], np.empty((0,)), np.array(3.0)):
        assert address(view) == view.__array_interface__["data"][0]
