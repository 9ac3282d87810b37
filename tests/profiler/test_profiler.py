"""Profiles: what is counted equals what is counted by hand; times add up; traces follow the format's documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.__main__ import main
from minitorch.errors import NonFiniteError, ObserverError
from minitorch.interpreters import current_watcher
from minitorch.nn import functional as F
from minitorch_profiler import Machine, Profile, machines, roofs
from minitorch_profiler.recorder import Recorder
from tests.support.programs import classifier

ROOFS = Machine("a machine", 16, 1, (32 << 10, 1 << 20, 32 << 20), 1e10, dict.fromkeys(("float32", "int32"), 1e10))
BACKENDS = ("interpret", "llvm", "loops")

N = 64 * 100
X, Y = mt.randn(64, 100), mt.randn(64, 100)
W, B = mt.randn(32, 100), mt.randn(32)
INDICES = mt.arange(16) % 5
TABLE = mt.randn(64, 10)

# name: function, arguments, and of its kernels: bytes read, bytes written, flops, transcendentals
BY_HAND: dict[str, tuple[Any, ...]] = {
    "add": (lambda x, y: x + y, (X, Y), (8 * N, 4 * N, N, 0)),
    "two operations": (lambda x: x * 2 + 1, (X,), (4 * N, 4 * N, 2 * N, 0)),
    "exp": (lambda x: x.exp(), (X,), (4 * N, 4 * N, 0, N)),
    "relu": (lambda x: mt.relu(x), (X,), (4 * N, 4 * N, 2 * N, 0)),  # a comparison, and a choice
    "row sums": (lambda x: x.sum(1), (X,), (4 * N, 4 * 64, N, 0)),
    "softmax": (lambda x: x.softmax(1), (X,), (4 * N, 4 * N, 4 * N, N)),  # max, sub, sum, div; exp
    "centred rows": (lambda x: x - x.mean(1, keepdim=True), (X,), (4 * N, 4 * N, 2 * N + 64, 0)),
    "transposed": (lambda x: x.T + 1, (X,), (4 * N, 4 * N, N, 0)),
    "every other column": (lambda x: x[:, ::2] * 2, (X,), (2 * N, 2 * N, N // 2, 0)),
    "product": (lambda x, w: x @ w.T, (X, W), (4 * N + 4 * 3200, 4 * 2048, 2 * 64 * 32 * 100, 0)),
    "linear": (F.linear, (X, W, B), (4 * N + 4 * 3200 + 4 * 32, 4 * 2048, 2 * 64 * 32 * 100 + 2048, 0)),
    "lookup": (lambda i, t: t[i], (INDICES, TABLE), (8 * 16 + 4 * 160, 4 * 160, 0, 0)),
}


def counts(counted):
    return counted.bytes_read, counted.bytes_written, counted.flops, counted.transcendentals


@pytest.mark.parametrize("name", BY_HAND)
def test_counts_are_those_made_by_hand_and_sum_to_the_cost(name):
    function, args, expected = BY_HAND[name]
    f = mt.jit(function)
    with mt.profile() as p:
        f(*args)
    assert counts(p) == expected
    assert counts(p) == counts(f.cost(*args))
    assert p.calls == f.cost(*args).kernels


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_over_a_training_step_equal_the_cost(backend):
    step = mt.jit(classifier(20, 30, 5)[1], backend=backend)
    x, y = mt.randn(8, 20), mt.arange(8) % 5
    step(x, y)
    step(x, y)
    with mt.profile() as p:
        step(x, y)
    cost = step.stages(x, y).graph.cost() if backend == "interpret" else step.cost(x, y)
    assert counts(p) == counts(cost)
    assert sum(row.calls for row in p.rows("line")) == p.calls
    assert {kind for *_, kind, _ in p.recorder.events} == {"call", "node" if backend == "interpret" else "kernel"}


def test_eager_operations_are_counted_as_they_run():
    with mt.profile() as p:
        _ = X + Y
        X.sum(1)
        _ = X @ W.T
        _ = X * X
        _ = X.T
        _ = X + B[:1]
    expected = {
        "add": (2, 8 * N + 4 * N + 4, 8 * N, 2 * N),
        "reduce_sum": (1, 4 * N, 4 * 64, N),
        "dot": (1, 4 * N + 4 * 3200, 4 * 2048, 2 * 64 * 32 * 100),
        "mul": (1, 4 * N, 4 * N, N),
        "permute": (2, 0, 0, 0),
    }
    found = {row.name: (row.calls, row.bytes_read, row.bytes_written, row.flops) for row in p.rows()}
    assert expected.items() <= found.items()
    assert {row.kind for row in p.rows()} == {"eager"}


def test_an_expanded_operand_is_read_once_and_a_write_in_place_counts():
    row = mt.ones(1, 100).expand(64, 100)
    target = mt.zeros(64, 100)
    with mt.profile() as p:
        row * X
        target.copy_(X)
    by_name = {each.name: each for each in p.rows()}
    assert by_name["mul"].bytes_read == 4 * N + 400
    assert by_name["copy_"].bytes_read == by_name["copy_"].bytes_written == 4 * N


def test_a_reshape_that_has_to_copy_is_counted_and_one_that_need_not_is_free():
    columns = X.T
    with mt.profile() as p:
        view = X.reshape(-1)
        copy = columns.reshape(-1)
        part = copy[:10]
        del copy
    (row,) = [each for each in p.rows() if each.name == "reshape"]
    assert (row.calls, row.bytes_read, row.bytes_written) == (2, 4 * N, 4 * N)
    assert [size for _, size in p.live] == [4 * N], "the view keeps the memory of the copy"
    assert view.shape == (N,) and part.shape == (10,)


@pytest.mark.parametrize("backend", [None, *BACKENDS])
def test_results_are_the_same_and_the_parts_of_the_time_add_up(backend):
    f = mt.jit(lambda x: (x * 2).sum(1), backend=backend) if backend else lambda x: (x * 2).sum(1)
    expected = f(TABLE).numpy()
    with mt.profile() as p:
        np.testing.assert_array_equal(f(TABLE).numpy(), expected)
        f(TABLE[:5])
    assert current_watcher() is None
    parts = (p.kernels, p.dispatch, p.tracing, p.compiling, p.outside)
    assert all(part >= 0 for part in parts) and sum(parts) == pytest.approx(p.total)
    assert p.kernels == pytest.approx(sum(row.seconds for row in p.rows()))
    assert bool(backend) == (p.compiling > 0) == (p.tracing > 0)


def test_a_graph_run_by_a_session_and_by_lazy_is_profiled():
    with mt.Graph() as g:
        x = mt.placeholder(4, name="x")
        y = x.exp()
    session = mt.Session(g)
    with mt.profile() as p:
        session.run(y, {"x": np.zeros(4, np.float32)})
        with mt.lazy():
            TABLE.exp().sum().item()
    assert p.transcendentals == 4 + 640


def test_the_profile_of_a_block_that_fails_stays_readable():
    with pytest.raises(RuntimeError), mt.profile() as p:
        X.exp()
        raise RuntimeError
    X.exp()
    assert p.calls == 1 and p.total > 0


def test_what_is_looked_at_inside_of_the_block_is_what_has_run_so_far():
    with mt.profile() as p:
        first = X.exp()
        counts = p.calls, p.transcendentals, p.peak_bytes
        assert counts == (1, X.numel(), first.nbytes) and p.total > 0 and p.kernels > 0 and p.outside > 0
        second = X.exp()
    assert (p.calls, p.transcendentals) == (2, 2 * X.numel()) and p.peak_bytes == first.nbytes + second.nbytes
    assert p.total == p.total and p.live is p.live


def test_what_would_be_missed_is_refused():
    """A profile or check_nan that is replaced by another one inside it would see nothing, and not say so."""
    with mt.profile() as p:
        with pytest.raises(ObserverError, match=r"mt\.profile inside of mt\.profile"), mt.profile():
            pass
        with pytest.raises(ObserverError, match=r"mt\.debug.check_nan inside of mt\.profile"), mt.debug.check_nan():
            pass
        X.exp()
    assert p.calls == 1
    with mt.debug.check_nan():
        with pytest.raises(ObserverError, match=r"mt\.profile inside of mt\.debug.check_nan"), mt.profile():
            pass
        with mt.debug.check_nan(infinities=False):
            mt.zeros(1).log()
        with pytest.raises(NonFiniteError):
            mt.zeros(1).log()


def test_live_bytes_follow_what_is_held():
    with mt.profile() as p:
        a = X + Y
        b = a * Y
        del a
        b = b - Y
        del b
        c = X.sum(1)
        d = c.reshape(8, 8)
        del c, d
    assert [size for _, size in p.live] == [4 * N, 8 * N, 4 * N, 8 * N, 4 * N, 0, 256, 0]
    assert p.peak_bytes == 8 * N
    assert [when for when, _ in p.live] == sorted(when for when, _ in p.live)


def test_live_bytes_of_compiled_code_are_results_and_the_arena():
    f = mt.jit(lambda x: (x.exp() @ x.T).softmax(1))
    f(X)
    with mt.profile() as p:
        y = f(X)
        del y
    compiled: Any = f.traced(X).program.compiled
    arena = compiled.placement.arena_bytes
    assert p.live[-1][1] == 0 and 4 * 64 * 64 + arena <= p.peak_bytes <= 4 * 64 * 64 + arena + 64


def test_rows_by_line_name_the_lines_of_this_file():
    with mt.profile() as p:
        y = X + 1
        y = y * 2
    lines = {row.name: row.where for row in p.rows("line")}
    assert sorted(lines.values()) == ["add", "mul"]
    assert all(name.startswith("test_profiler.py:") for name in lines)
    with pytest.raises(ValueError, match="'operation' or 'line'"):
        p.rows("colour")


class Twice(mt.autograd.Function):
    """A gradient of the user's, in the middle of a walk over the tape."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.sin()


class Descent(mt.optim.SGD):
    """An update of the user's."""

    def update(self, group, parameters, gradients):
        return [p.copy_(g.floor()) for p, g in zip(parameters, gradients, strict=True)]


def test_the_lines_of_the_users_functions_are_found_within_backward_and_step():
    """Rules and updates of the package look for the line once for all their operations; what they call is another's."""
    w = mt.ones(3, requires_grad=True)
    w.register_hook(lambda gradient: gradient.tanh())
    adam, descent = mt.optim.Adam([w]), Descent([w], 0.1)
    with mt.profile() as p:
        loss = Twice.apply(w.exp().exp()).sum()
        loss.backward()
        adam.step()
        descent.step()
    text = Path(__file__).read_text().splitlines()
    asked = {text[int(row.name.rpartition(":")[2]) - 1].strip(): set(row.where.split(", ")) for row in p.rows("line")}
    assert asked.pop("return x * 2") == {"mul"}
    assert asked.pop("return gradient.sin()") == {"sin"}
    assert asked.pop("w.register_hook(lambda gradient: gradient.tanh())") == {"tanh"}
    assert asked.pop("return [p.copy_(g.floor()) for p, g in zip(parameters, gradients, strict=True)]") >= {"floor"}
    assert asked.pop("loss = Twice.apply(w.exp().exp()).sum()") == {"exp", "reduce_sum"}
    assert asked.pop("loss.backward()") >= {"expand", "mul"}
    assert asked.pop("adam.step()") >= {"sqrt", "copy_"}
    assert not asked


def test_tables_show_rows_shares_and_sums():
    with mt.profile() as p:
        X.exp()
        _ = X + Y
    text = p.table(roofs=ROOFS)
    assert all(word in text for word in ("exp", "add", "of copy", "of peak", "dispatch", "compiling", "at once"))
    assert "test_profiler.py" in text and "test_profiler.py" in p.table("line", roofs=ROOFS)
    assert p.table(limit=1, roofs=ROOFS).splitlines()[2] == "and 1 more"


def test_comparing_sets_rows_and_sums_side_by_side():
    with mt.profile() as p:
        X.exp()
    with mt.profile() as q:
        X.exp()
        X.exp()
        _ = X + Y
    rows = {line.split()[0]: line.split()[1:] for line in p.compare(q).splitlines()}
    assert rows["exp"][:2] == ["1", "2"] and rows["exp"][-1] == "2.00"
    assert rows["add"][:2] == ["0", "1"] and rows["add"][-1] == "-"
    assert rows["total"][:2] == ["1", "3"]


# --- the trace ---


def problems(event):
    """What is wrong with an event, by the Trace Event Format's description of its phase."""
    fields: dict[str, Any]
    fields = {"name": str, "cat": str, "ph": str, "ts": (int, float), "pid": int, "tid": int, "args": dict}
    wrong = [name for name, kind in fields.items() if not isinstance(event.get(name), kind)]
    match event.get("ph"):
        case "X":  # a complete event: when it began, how long it took, both in microseconds
            ok = isinstance(event.get("dur"), (int, float)) and event["dur"] >= 0 and event["ts"] >= 0
        case "C":  # a counter: its arguments are series of numbers
            ok = bool(event["args"]) and all(isinstance(value, (int, float)) for value in event["args"].values())
        case "M":  # metadata: which name is given to the process or the thread
            ok = event["name"] in ("process_name", "thread_name") and isinstance(event["args"].get("name"), str)
        case _:
            ok = False
    return wrong if ok else [*wrong, "what belongs to its phase"]


def test_the_chrome_trace_follows_the_format(tmp_path):
    step = mt.jit(classifier(20, 30, 5)[1])
    with mt.profile() as p:
        step(mt.randn(8, 20), mt.arange(8) % 5)
        step(mt.randn(8, 20), mt.arange(8) % 5)
    path = tmp_path / "trace.json"
    p.chrome_trace(path)
    trace = json.loads(path.read_text())
    assert set(trace) == {"traceEvents", "displayTimeUnit"} and trace["displayTimeUnit"] in ("ms", "ns")
    events = trace["traceEvents"]
    assert [(event, found) for event in events if (found := problems(event))] == []
    complete = [event for event in events if event["ph"] == "X"]
    assert {event["cat"].split(",")[0] for event in complete} == {"kernel", "call", "trace", "passes", "compile"}
    kernels = [event for event in complete if event["cat"].startswith("kernel")]
    assert len(kernels) == p.calls
    assert sum(event["args"]["bytes read"] for event in kernels) == p.bytes_read
    counters = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
    assert max(counters) == p.peak_bytes
    ordered = sorted(complete, key=lambda event: (event["ts"], -event["dur"]))
    # Complete events of one thread are nested: none ends inside another that began before it.
    open_until: list[float] = []
    for event in ordered:
        while open_until and open_until[-1] <= event["ts"]:
            open_until.pop()
        assert not open_until or event["ts"] + event["dur"] <= open_until[-1] + 1e-3
        open_until.append(event["ts"] + event["dur"])


def test_self_time_counts_nothing_twice():
    recorder = Recorder()
    recorder.begin, recorder.end = 0, 100_000_000_000
    second = 1_000_000_000
    recorder.events = [
        (10 * second, 20 * second, "trace", "f"),
        (20 * second, 25 * second, "compile", "f"),
        (30 * second, 40 * second, "kernel", None),
        (28 * second, 45 * second, "call", "f"),
        (5 * second, 50 * second, "call", "f"),
    ]
    p = Profile(recorder)
    assert (p.kernels, p.tracing, p.compiling, p.dispatch, p.outside) == (10, 10, 5, 20, 55)


# --- the machine ---


@pytest.fixture
def forgotten(monkeypatch, tmp_path):
    """A cache folder of its own, and a count of the measurements."""
    measured = []

    def measure():
        measured.append(1)
        rates = {dtype.name: 1e9 + len(measured) for dtype in machines.TYPES}
        return Machine("a machine", 16, 1, (1 << 15, 1 << 20, 1 << 25), 1e10, rates)

    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(machines, "measure", measure)
    monkeypatch.setattr(machines, "_known", {})
    return measured, tmp_path


def test_the_machine_is_measured_once_and_remembered(forgotten, capsys):
    measured, folder = forgotten
    first = mt.machine()
    assert mt.machine() is first
    machines._known.clear()  # as in another process
    assert mt.machine() == first and len(measured) == 1
    (entry,) = folder.iterdir()
    assert entry.stat().st_mode & 0o077 == 0
    assert mt.machine(again=True) != first and len(measured) == 2
    first = mt.machine()
    assert main(["machine"]) == 0
    assert capsys.readouterr().out.strip() == str(first)


def test_measuring_again_keeps_what_is_better(forgotten, monkeypatch):
    first = mt.machine()
    slower = Machine("a machine", 16, 1, (1 << 15, 1 << 20, 1 << 25), 2e10, dict.fromkeys(first.flops, 1.0), busy=True)
    monkeypatch.setattr(machines, "measure", lambda: slower)
    again = mt.machine(again=True)
    assert (again.bandwidth, again.flops, again.busy) == (2e10, first.flops, False)
    assert "again=True" in str(slower) and "again=True" not in str(again)


@pytest.mark.parametrize("share, busy", [(0.5, True), (1.0, False)])
def test_a_machine_that_others_use_meanwhile_is_busy(monkeypatch, share, busy):
    clock = [0.0]

    def one_second(*_):
        clock[0] += 1
        return 1e9

    monkeypatch.setattr(roofs, "bandwidth", one_second)
    monkeypatch.setattr(roofs, "flop_rate", one_second)
    monkeypatch.setattr(machines, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(machines, "process_time", lambda: clock[0] * share * mt.get_num_threads())
    assert machines.measure().busy is busy


@pytest.mark.parametrize("damage", [lambda old: b"", lambda old: old[:-3], lambda old: old.replace(b"16", b"32")])
def test_a_damaged_entry_is_ignored(forgotten, damage):
    measured, folder = forgotten
    mt.machine()
    (entry,) = folder.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    machines._known.clear()
    mt.machine()
    assert len(measured) == 2


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"bandwidth": 1}', b"\xff"])
def test_what_is_no_machine_is_not_taken_for_one(content):
    assert machines.read(content) is None


def test_rates_that_are_no_rates_are_refused():
    fields = {"processor": "p", "vector_bytes": 16, "threads": 1, "caches": [1, 2, 3]}
    rates = {dtype.name: 1.0 for dtype in machines.TYPES}
    assert machines.read(json.dumps(fields | {"bandwidth": 1.0, "flops": rates}).encode()) is not None
    for bandwidth, flops in ((0.0, rates), (float("nan"), rates), (1.0, rates | {"float32": -1.0}), (1.0, {})):
        assert machines.read(json.dumps(fields | {"bandwidth": bandwidth, "flops": flops}).encode()) is None


@pytest.mark.parametrize("dtype", machines.TYPES, ids=str)
def test_the_kernel_of_the_peak_rate_computes_what_it_counts(dtype, monkeypatch):
    monkeypatch.setattr(roofs, "ROUNDS", 3)
    text, operations = roofs.flops_text(dtype)
    lanes, chains = roofs.lanes(dtype), text.count(" phi ") - 1
    assert operations == 2 * 3 * chains * lanes
    assert roofs.flop_rate(dtype, 0) > 0


def test_the_copy_copies(monkeypatch):
    monkeypatch.setattr(roofs, "MOST_COPIED", 1 << 16)
    assert roofs.bandwidth(0) > 0  # raises if what comes out is not what went in
