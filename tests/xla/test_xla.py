"""The backend of XLA gives the numbers of the others, and its values stay on the device until Python asks for them."""

from __future__ import annotations

import copy
import importlib.util
import math
import pickle
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import primitives as P
from minitorch.errors import ArgumentError, DeviceError
from minitorch.ir import PRIMITIVES
from minitorch.tensor import Remote
from minitorch_profiler import breakeven
from tests.compiler.codegen.test_bits import BEYOND
from tests.modes.test_modes import ALL, assert_close, eager, jitted, lazily, run, takes_floats
from tests.support.sessions import session

jax = pytest.importorskip("jax")
xla = pytest.importorskip("minitorch.backends.xla")

TYPES = (mt.float32, mt.float64, mt.bfloat16, mt.float16)


def on_device(*tensors):
    return [isinstance(x._value, Remote) for x in tensors]


def double(x):
    return x * 2


# --- the same numbers -----------------------------------------------------------------------------------


def test_every_primitive_has_a_rule():
    assert set(xla.RULES) == set(PRIMITIVES)


TYPED = [(case, TYPES[number % 4] if takes_floats(case) else mt.float32) for number, case in enumerate(ALL)]


@pytest.mark.parametrize(("case", "dtype"), TYPED, ids=[f"{case}-{dtype.short}" for case, dtype in TYPED])
def test_every_public_function_gives_the_same_numbers(case, dtype):
    tensors = case.tensors(dtype)
    assert_close(run(jitted, case.function, tensors, "xla"), run(eager, case.function, tensors))


@pytest.mark.parametrize("mode", [session, lazily], ids=["session", "lazy"])
@pytest.mark.parametrize("case", ALL[::40], ids=str)
def test_a_session_and_a_lazy_block_run_on_it_too(mode, case):
    tensors = case.tensors(mt.float32)
    assert_close(run(mode, case.function, tensors, "xla"), run(eager, case.function, tensors))


@pytest.mark.parametrize("shape", [(), (1,), (1000,), (3, 5, 7), (0, 4)])
def test_random_numbers_are_the_same_bits(shape):
    def draw():
        return mt.rand(shape), mt.randn(shape), mt.rand(shape, dtype=mt.float64), mt.randint(0, 1 << 40, shape)

    mt.manual_seed(3)
    expected = [draw() for _ in range(2)]
    mt.manual_seed(3)
    compiled = mt.jit(draw, backend="xla")
    for ours, theirs in zip(expected, [compiled() for _ in range(2)], strict=True):
        for one, other in zip(ours, theirs, strict=True):
            if one.dtype is mt.float32 and one is ours[1]:  # a logarithm, a root and a cosine of the bits
                assert_close(other, one)
            else:
                assert one.dtype is other.dtype and one.tolist() == other.tolist()


def test_integers_are_those_of_eager_mode_where_xla_has_others():
    a = mt.tensor([7, -7, 7, -7, 0, -128, -128, 127], dtype=mt.int8)
    b = mt.tensor([0, 0, 2, 2, 0, -1, 2, -128], dtype=mt.int8)

    def everything(a, b):
        return a // b, a % b, abs(a), -a, a << 9, a >> 9, a.clamp(min=0) ** b.clamp(min=0), a * b, a.sum(dtype=mt.int8)

    for mine, theirs in zip(mt.jit(everything, backend="xla")(a, b), everything(a, b), strict=True):
        assert mine.dtype is theirs.dtype and mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_floats_beyond_the_range_become_the_integers_of_eager_mode(dtype):
    x = mt.tensor(BEYOND, dtype=mt.float64).to(dtype)
    integers = [each for each in mt.dtypes.ALL if each.category == "int"]

    def everything(x):
        return [x.to(each) for each in integers]

    for mine, theirs in zip(mt.jit(everything, backend="xla")(x), everything(x), strict=True):
        assert mine.dtype is theirs.dtype and mine.tolist() == theirs.tolist()


AS_ZEROS = {
    "product": lambda x: x * 1e5,
    "log": lambda x: x.log(),
    "square root": lambda x: x.abs().sqrt(),
    "sign": lambda x: x.sign(),
    "comparison": lambda x: x < 0,
    "order": lambda x: x.argsort(),
}
KEPT = {"flip": lambda x: x.flip(0), "cat": lambda x: mt.cat([x, x]), "negative": lambda x: -x}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_denormal_numbers_are_zeros_on_the_cpu_but_where_they_are_moved(dtype):
    """In the words of `minitorch_xla` and of the README. In float16 they are kept."""
    x = mt.tensor([1.0, -1.0], dtype=dtype) * (mt.finfo(dtype).tiny / 8)
    zeros = mt.tensor([0.0, -0.0], dtype=dtype)
    for name, function in (AS_ZEROS | KEPT).items():
        given = zeros if name in AS_ZEROS and dtype is not mt.float16 else x
        found, expected = mt.jit(function, backend="xla", device="cpu")(x), function(given)
        assert repr(found.tolist()) == repr(expected.tolist()), name
        assert name not in AS_ZEROS or repr(function(x).tolist()) != repr(function(zeros).tolist()), name


def test_an_index_that_was_computed_from_a_float_is_that_of_eager_mode():
    def f(x, i):
        return x[i.to(mt.uint8).long()], x[i.long()]

    x = mt.arange(400.0)
    assert [each.item() for each in mt.jit(f, backend="xla")(x, mt.tensor([300.5]))] == [44, 300]
    with pytest.raises(IndexError, match="index -9223372036854775808 is out of bounds"):
        mt.jit(f, backend="xla")(x, mt.tensor([float("nan")]))


def test_a_value_that_is_rounded_to_16_bits_is_rounded():
    def f(x):
        return (x.bfloat16().float() - x).abs().sum()

    x = mt.rand(1000)
    assert mt.jit(f, backend="xla")(x).item() == f(x).item() > 0


def test_a_condition_as_a_number_times_infinity_is_not_a_selection():
    condition, x = mt.tensor([True, False]), mt.tensor([math.inf, math.inf])
    for dtype in TYPES:
        found = mt.jit(lambda c, x: c.to(x.dtype) * x, backend="xla")(condition, x.to(dtype)).tolist()
        assert found[0] == math.inf and math.isnan(found[1])


def test_logarithms_near_1_have_all_their_digits():
    x = np.concatenate([-np.geomspace(1e-12, 0.99, 500), np.geomspace(1e-12, 1e9, 500)])
    special = mt.tensor([0.0, -0.0, -1.0, -2.0, math.inf, -math.inf, math.nan], dtype=mt.float64)
    log1p = mt.jit(P.log1p, backend="xla")
    np.testing.assert_allclose(log1p(mt.tensor(x)).numpy(), np.log1p(x), rtol=8 * np.finfo(float).eps)
    np.testing.assert_array_equal(log1p(special).numpy(), P.log1p(special).numpy())
    assert math.copysign(1, log1p(special)[1].item()) == -1


def test_of_equal_indices_the_last_update_wins():
    def f(x, i, u):
        x = x.clone()
        x[i] = u
        return x

    x, i, u = mt.zeros(5, 2), mt.tensor([1, 3, 1, 1, 3]), mt.arange(10.0).reshape(5, 2)
    assert mt.jit(f, backend="xla")(x, i, u).tolist() == f(x, i, u).tolist() == [[0, 0], [6, 7], [0, 0], [8, 9], [0, 0]]


def test_an_index_that_xla_alone_finds_out_of_range_is_an_error_and_no_zero(monkeypatch):
    """Both round: an index that is computed from floats may be another one."""
    monkeypatch.setitem(xla.RULES, "floor", lambda x: x + 1000)
    state = mt.zeros(1)

    @mt.jit(backend="xla")
    def f(x, at):
        state.add_(1)
        return x[at.floor().sum().long()]

    with pytest.raises(IndexError, match=r"(?s)out of bounds, recorded at .*test_xla.py:\d+; run by NumPy"):
        f(mt.ones(9), mt.tensor([3.5]))
    assert state.item() == 0


def test_large_constants_are_arguments_of_the_program_and_not_text_in_it():
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)

    def f(x):
        return x @ mt.tensor(weights)

    x = mt.ones(2, 64)
    frozen = mt.freeze(mt.nn.Linear(64, 64).eval(), x, backend="xla")
    compiled = mt.jit(f, backend="xla")
    assert_close(compiled(x), f(x))
    assert len(compiled.hlo(x).before) < 2000 and frozen(x).shape == (2, 64)
    layer, images = mt.nn.Conv2d(16, 32, 3).eval(), mt.rand(2, 16, 6, 6)
    of_images = mt.freeze(layer, images, backend="xla")
    assert_close(of_images(images), layer(images).detach())
    text = of_images.hlo(images).before
    assert " convolution(" in text and len(text) < 4000


# --- values on the device ---------------------------------------------------------------------------------


def test_a_value_stays_on_the_device_until_python_asks_for_it():
    f = mt.jit(double, backend="xla")
    y = f(mt.ones(3))
    z = f(y)
    assert on_device(y, z) == [True, True]
    assert (z.shape, z.dtype, z.ndim, z.numel(), z.nbytes) == ((3,), mt.float32, 1, 3, 12)
    assert on_device(y, z) == [True, True]
    assert z.tolist() == [4, 4, 4] and repr(z) and on_device(y, z) == [True, True]
    assert z.numpy().tolist() == [4, 4, 4] and on_device(y, z) == [True, False]  # somebody may write to it
    assert len(f._reports) == 1  # a value on the device and one on the host have one signature


ASKS = {
    "item": lambda x: x.sum().item(),
    "numpy": lambda x: x.numpy().sum(),
    "asarray": lambda x: np.asarray(x).sum(),
    "repr": lambda x: repr(x) and 6.0,
    "arithmetic": lambda x: (x + 0).sum().item(),
    "where": lambda x: mt.where(x > 0, x, x).sum().item(),
    "a view": lambda x: x[1:].sum().item() + x[0].item(),
    "a copy": lambda x: copy.deepcopy(x).sum().item(),
    "a pickle": lambda x: pickle.loads(pickle.dumps(x)).sum().item(),
    "in place": lambda x: x.add_(1).sum().item() - 3,
    "other code": lambda x: mt.jit(double)(x).sum().item() / 2,
    "the interpreter": lambda x: mt.jit(double, backend="interpret")(x).sum().item() / 2,
    "a branch": lambda x: 6.0 if (x > 0).all() else 0.0,
    "iteration": lambda x: sum(each.item() for each in x),
    "dlpack": lambda x: float(np.from_dlpack(x).sum()),
    "stack": lambda x: mt.stack([x, x]).sum().item() / 2,
    "a parameter": lambda x: mt.nn.Parameter(x).sum().item(),
    "a shadow": lambda x: mt.jit(double, check=True)(x).sum().item() / 2,
    "a constant": lambda x: mt.freeze(lambda y: x * y, mt.ones(3))(mt.ones(3)).sum().item(),
    "a profile": lambda x: _profiled(x),
    "a gradient": lambda x: mt.autograd.grad((y := x.requires_grad_()).square().sum(), [y])[0].sum().item() / 2,
}


def _profiled(x):
    with mt.profile():
        return (x * 1).sum().item()


@pytest.mark.parametrize("ask", ASKS)
def test_whatever_asks_for_the_numbers_gets_them(ask):
    x = mt.jit(double, backend="xla")(mt.ones(3))
    assert on_device(x) == [True]
    assert ASKS[ask](x) == 6.0


def test_captured_values_come_from_the_device_in_every_mode():
    w = mt.zeros(3)

    def step():
        return w.add_(1).sum()

    mt.jit(step, backend="xla")()
    assert on_device(w) == [True]
    assert mt.jit(step)().item() == 6.0
    mt.jit(step, backend="xla")()
    with mt.lazy():
        assert step().item() == 12.0
    mt.jit(step, backend="xla")()
    with mt.Graph() as g:
        x = (w * 2).sum()
    assert mt.Session(g).run(x).item() == 30.0
    assert step().item() == 18.0


ONE = mt.sharding.Mesh((1,), ("all",))
MODES = {
    "eager": eager,
    "captured": lambda function, tensors: mt.jit(lambda: function(*tensors), backend="interpret")(),
    "lazy": lazily,
}


@pytest.mark.parametrize("mode", MODES)
def test_every_public_function_takes_values_on_the_device(mode):
    for case in ALL:
        tensors = [x.detach() for x in case.tensors(mt.float32)]
        there = [mt.sharding.shard(x, ONE, ()) for x in tensors]
        assert all(on_device(*there))
        assert_close(run(MODES[mode], case.function, there), run(eager, case.function, tensors))


def test_a_network_that_was_trained_there_is_used_in_every_other_way(tmp_path):
    model = mt.nn.Sequential(mt.nn.Conv2d(1, 2, 3), mt.nn.BatchNorm2d(2), mt.nn.Flatten(), mt.nn.Linear(18, 3))
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)

    @mt.jit(backend="xla")
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def lazy(x):
        with mt.lazy("interpret"):
            return model(x)

    def exported(x):
        path = tmp_path / "model.onnx"
        mt.export.onnx(model, x, path=path)
        return mt.export.load_onnx(path)(x)

    x = mt.randn(4, 1, 5, 5)
    uses = [lambda x: mt.jit(model)(x), lambda x: mt.jit(model, backend="xla")(x), lazy]
    uses += [lambda x: mt.freeze(model, x)(x), *[exported] * bool(importlib.util.find_spec("onnx"))]
    for use in uses:
        step(x)
        step(x[:3])  # the last batch of an epoch is smaller
        assert all(on_device(*model.parameters(), *model.buffers()))
        model.eval()
        with mt.no_grad():
            assert_close(use(x[:2]), model(x[:2]))
        model.train()


def trained(backend, steps=5, **options):
    mt.manual_seed(0)
    model = mt.nn.Sequential(mt.nn.Linear(8, 16), mt.nn.BatchNorm1d(16), mt.nn.ReLU(), mt.nn.Linear(16, 3))
    optimizer = mt.optim.AdamW(model.parameters(), lr=0.01)
    x, y = mt.randn(32, 8), mt.randint(0, 3, (32,))

    @mt.jit(backend=backend, **options)
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(F.dropout(model(x), 0.1), y)
        loss.backward()
        optimizer.step()
        return loss

    return [step(x, y).item() for _ in range(steps)], model, step


def test_a_training_step_gives_the_losses_of_the_other_backends_and_parameters_stay_there():
    ours, _, _ = trained("llvm")
    theirs, model, step = trained("xla")
    np.testing.assert_allclose(theirs, ours, rtol=1e-5)
    assert all(on_device(*model.parameters(), *model.buffers())) and len(step._reports) == 1
    assert all(on_device(*(parameter.grad for parameter in model.parameters())))


def test_a_parameter_that_somebody_looks_at_keeps_its_memory():
    w = mt.zeros(3)
    seen, view = w.numpy(), w[1:]
    mt.jit(lambda: w.add_(1), backend="xla")()
    assert seen.tolist() == [1, 1, 1] and view.tolist() == [1, 1] and on_device(w) == [False]


def test_an_array_may_be_written_to_after_the_call():
    x = mt.ones(1 << 16)
    y = mt.jit(double, backend="xla")(x)
    x.fill_(5)
    assert y.sum().item() == 2 << 16


def test_gradients_through_a_call_are_those_of_the_function():
    def f(x, w):
        return (x @ w).tanh().sum(1)

    x, w = mt.randn(4, 3), mt.randn(3, 2).requires_grad_()
    expected = mt.autograd.grad(f(x, w).square().sum(), [w])[0]
    found = mt.autograd.grad(mt.jit(f, backend="xla")(x, w).square().sum(), [w])[0]
    assert_close(found, expected)


def test_a_nan_is_found_where_it_is_made():
    w = mt.zeros(2)
    f = mt.jit(lambda x: (w.add_(1) / x).log().sum(), backend="xla")
    f(mt.ones(2))
    with pytest.raises(mt.errors.NonFiniteError, match=r"(?s)MT501: log made.*test_xla.py:"), mt.debug.check_nan():
        f(-mt.ones(2))
    with mt.debug.check_nan():
        f(mt.ones(2))
    assert w.tolist() == [2, 2]


def test_a_profile_has_a_row_for_the_program():
    def step(x, y):
        return (x @ y + 1).exp()

    x, y = mt.ones(8, 16), mt.ones(16, 4)
    f = mt.jit(step, backend="xla")
    f(x, y)
    with mt.profile() as found:
        f(x, y)
        f(x, y)
    (row,) = found.rows()
    assert (row.name, row.kind, row.calls, row.where.partition(":")[0]) == ("step", "XLA", 2, "test_xla.py")
    cost = f.cost(x, y)
    assert (row.bytes, row.flops, row.transcendentals) == (2 * cost.bytes, 2 * cost.flops, 2 * cost.transcendentals)
    assert found.compiling == 0 < found.kernels


@pytest.mark.parametrize("case", ALL[::20], ids=str)
def test_shadow_mode_accounts_for_what_xla_rounds_otherwise(case):
    """It fuses products with sums, and divides by multiplying with a reciprocal."""
    tensors = [x.detach() for x in case.tensors(mt.float32)]
    mt.manual_seed(7)
    mt.jit(case.function, backend="xla", check=True)(*tensors)


def test_shadow_mode_accounts_for_a_training_step():
    _, _, step = trained("xla", steps=2, check=True)
    assert step.checked()[0].ok


PLANTED = {
    "floor": lambda x: jax.lax.floor(x) + 1,
    "tanh": lambda x: jax.lax.tanh(x) * np.float32(1.001),
    "permute": lambda x, *, dims: jax.numpy.reshape(x, [x.shape[dim] for dim in dims]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_shadow_mode_names_the_backend_and_what_it_computes_wrongly(name, monkeypatch, tmp_path):
    monkeypatch.setitem(xla.RULES, name, PLANTED[name])
    f = mt.jit(lambda x: (x * 3).floor().tanh().T.contiguous() + x.T, backend="xla", check=tmp_path)
    with pytest.raises(mt.errors.MismatchError, match=rf"(?s)MT502.*backend 'xla', first in {name}: .*test_xla.py:"):
        f(mt.randn(3, 4))
    assert f.checked()[0].culprit.stage == "backend"


def test_the_time_in_which_xla_compiles_is_counted_once():
    f, x = mt.jit(lambda x: (x @ x).tanh(), backend="xla"), mt.ones(4, 4)
    with mt.profile() as first:
        f(x)
    program = f._reports[0].program
    by_xla = getattr(program.compiled, "compile_time")  # noqa: B009  of backends that compile in the first call
    spent = f.compile_time
    assert 0 < by_xla < spent and by_xla <= first.compiling
    assert f"compiled in {f._reports[0].compile_time * 1e3:.1f} ms" in str(f.explain())
    with mt.profile() as second:
        f(x)
    assert f.compile_time == spent and second.compiling == 0


def test_donated_memory_is_used_again():
    f = mt.jit(lambda x: x + 1, backend="xla", donate="x")
    x = mt.jit(double, backend="xla")(mt.ones(1 << 12))
    before = x._value.array.unsafe_buffer_pointer()
    y = f(x)
    assert y._value.array.unsafe_buffer_pointer() == before
    with pytest.raises(mt.errors.TracingError, match="MT111"):
        x.sum()


# --- devices and texts ------------------------------------------------------------------------------------


def test_the_device_is_one_that_jax_sees():
    x = mt.ones(2)
    assert mt.jit(double, backend="xla", device="cpu")(x).tolist() == [2, 2]
    for device in ("cuda", "cpu:99", "cpu:x", "abacus"):
        with pytest.raises(DeviceError, match=rf"(?s)MT203: there is no device '{device}'.*JAX sees .*cpu:0"):
            mt.jit(double, backend="xla", device=device)(x)
    with pytest.raises(ValueError, match="device='cuda' is for backend='xla'"):
        mt.jit(double, device="cuda")
    assert mt.jit(double, device="cpu")(x).tolist() == [2, 2]
    for backend in ("llvm", "xla"):
        with pytest.raises(ValueError, match="device='' names no device"):
            mt.jit(double, backend=backend, device="")
    with pytest.raises(ValueError, match="there is no backend 'llvm:cpu'"):
        mt.jit(double, backend="llvm:cpu")


def test_without_jax_there_is_one_sentence():
    program = """
        import sys
        sys.modules["jax"] = None
        import minitorch as mt
        mesh, f = mt.sharding.Mesh((1,), ("d",)), mt.jit(lambda x: x, backend="xla")
        for ask in (f, f.hlo, f.collectives, lambda x: mt.sharding.shard(x, mesh, ("d",))):
            try:
                ask(mt.ones(2))
            except ModuleNotFoundError as error:
                print(error)
    """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    said = "the backend 'xla' needs JAX, which is not installed: pip install jax\n"
    assert found.stdout == 4 * said


def test_its_program_is_lined_up_with_our_kernels_by_line():
    def f(x, w):
        y = (x @ w).relu()
        return y.exp().sum()

    x, w = mt.ones(8, 16), mt.ones(16, 4)
    compiled = mt.jit(f, backend="xla")
    found = compiled.hlo(x, w)
    first = f.__code__.co_firstlineno
    rows = {line.partition(":")[2]: (ours, kernels) for line, _, ours, kernels in found.lines()}
    assert set(rows) == {str(first + 1), str(first + 2)}
    assert all(ours and theirs for ours, theirs in rows.values())
    assert " dot(" in found.before and "HloModule" in found.after and "site-packages" not in found.after
    assert any("dot" in kernel.operations for kernel in found.kernels)
    assert f"{len(found.kernels)} of XLA's" in str(found)
    assert f"XLA runs {len(found.kernels)} kernels, we would run" in str(compiled.explain())
    with pytest.raises(ArgumentError, match="runs on the backend 'llvm'"):
        mt.jit(f).hlo(x, w)


def test_threads_that_call_one_updating_function_take_turns():
    state = mt.zeros(100)
    step = mt.jit(lambda x: state.add_(x).sum(), backend="xla")
    other = mt.jit(lambda x: (state * x).sum(), backend="xla")
    seen, failures = [], []

    def calls():
        try:
            for _ in range(25):
                seen.append(step(mt.ones(100)).item())
                other(mt.ones(100))
                state.tolist()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(seen) == [100.0 * number for number in range(1, 101)]
    assert state.tolist() == [100.0] * 100


def test_parameters_stay_on_the_device_where_nobody_else_has_their_memory():
    model = mt.nn.Linear(3, 2).requires_grad_(False)
    held = model.bias.numpy()
    run, x = mt.jit(model, backend="xla"), mt.ones(1, 3)
    run(x)
    assert isinstance(model.weight._value, Remote) and type(model.bias._value) is np.ndarray
    first: Any = model.weight._value
    held[:] = 5
    np.testing.assert_allclose(run(x).numpy(), (x.numpy() @ first.array.T + 5), rtol=1e-5)
    assert model.weight._value is first
    model.weight.numpy()[:] = 0  # a copy on the host that may be written to is what counts from then on
    np.testing.assert_allclose(run(x).numpy(), [[5, 5]])


def test_parameters_stay_on_the_device_when_they_are_saved(tmp_path):
    weight = mt.ones(3, requires_grad=True)
    optimizer = mt.optim.SGD([weight], lr=0.1)

    @mt.jit(backend="xla")
    def step(scale):
        optimizer.zero_grad()
        loss = (weight * weight).sum() * scale
        loss.backward()
        optimizer.step()
        return loss

    where = []
    for _ in range(2):
        step(mt.tensor(1.0))
        where.append(type(weight._value))
        mt.save({"w": weight}, tmp_path)
        where.append(type(weight._value))
    assert where == [Remote] * 4
    np.testing.assert_allclose(weight.detach().numpy(), np.full(3, 0.64), rtol=1e-6)


def test_the_time_of_a_call_has_no_compilation_in_it(monkeypatch):
    inside, within, compile_, shortest = [], [], xla.Compiled._compile, breakeven.shortest

    def timed(call):
        within.append(True)
        try:
            return shortest(call)
        finally:
            within.pop()

    step = mt.jit(lambda x: mt.nn.functional.softmax(x, -1).sum(), backend="xla")
    step(mt.ones(8, 64))
    monkeypatch.setattr(xla.Compiled, "_compile", lambda *given: (inside.append(bool(within)), compile_(*given)))
    monkeypatch.setattr(breakeven, "shortest", timed)
    assert "ms compiled" in str(step.explain())
    assert True not in inside
