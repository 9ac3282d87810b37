"""Copies and pickles of tensors and modules, and models stored with NumPy."""

from __future__ import annotations

import copy
import copyreg
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from tests.core.public_objects import ROWS, Jitting, decorated, public_classes, public_functions

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle 2": lambda value: pickle.loads(pickle.dumps(value, 2)),
    "pickle 5": lambda value: pickle.loads(pickle.dumps(value, 5)),
}
DEEP = {name: way for name, way in WAYS.items() if name != "copy"}


def test_each_public_class_has_a_row() -> None:
    missing = [name for name in public_classes() if name not in ROWS]
    assert not missing, f"add a row to tests/core/public_objects.py for {missing}"
    made = {type(ROWS[name].make()).__name__ for name in ("Adam", "LSTM", "Quantized", "Mesh", "JittedModule")}
    assert made == {"Adam", "LSTM", "Sequential", "Mesh", "JittedModule"}


def test_each_public_function_is_pickled_by_its_name() -> None:
    found = public_functions()
    assert len(found) > 300
    assert not [name for name, function in found.items() if pickle.loads(pickle.dumps(function)) is not function]


@pytest.mark.parametrize("name", ROWS)
def test_a_copy_behaves_as_the_object_and_is_independent(name: str, sweep: bool) -> None:
    """Before its first use or after it, by turns."""
    row = ROWS[name]

    def made(used: bool) -> Any:
        found = row.make()
        if used:
            row.use(found)
        return found

    for used in (False, True) if sweep else [bool([*ROWS].index(name) % 2)]:
        expected = None if row.refused else row.look(made(used))
        for way, copied in WAYS.items():
            if row.refused:
                if way != "copy":
                    with pytest.raises(TypeError, match=row.refused):
                        copied(made(used))
                continue
            assert row.look(copied(made(used))) == expected, way
            if row.change is not None and way != "copy":
                one = made(used)
                other = copied(one)
                row.change(other)
                assert row.look(one) == expected, way


def _sharing() -> dict[str, Callable[[mt.Tensor], mt.Tensor]]:
    return {
        "itself": lambda x: x,
        "detach": lambda x: x.detach(),
        "data": lambda x: x.data,
        "slice": lambda x: x[1:3],
        "view": lambda x: x.view(2, 6),
        "transpose": lambda x: x.T,
        "view of view": lambda x: x[1:].T[1:, :2],
        "detached view": lambda x: x[1:].detach(),
        "bits": lambda x: x.view(mt.int32),
        "parameter": mt.nn.Parameter,
        "parameter of a view": lambda x: mt.nn.Parameter(x[1:]),
        "state": lambda x: _holder(x).state_dict()["w"],
        "copy": copy.copy,
    }


def _holder(x: mt.Tensor) -> mt.nn.Module:
    module = mt.nn.Module()
    module.register_buffer("w", x)
    return module


@pytest.mark.parametrize("way", DEEP)
@pytest.mark.parametrize("first", _sharing())
def test_tensors_that_share_memory_share_the_copied_memory(first: str, way: str) -> None:
    for second in _sharing().values():
        base = mt.arange(12.0).reshape(4, 3).clone()
        original = [_sharing()[first](base), second(base)]
        kept, copied = base.tolist(), DEEP[way](original)
        for place in (0, 1):
            copied[place].detach().view(mt.float32).fill_(7 + place)
        assert base.tolist() == kept
        for place in (0, 1):
            original[place].detach().view(mt.float32).fill_(7 + place)
        assert [each.tolist() for each in copied] == [each.tolist() for each in original]


def test_a_long_chain_of_views_is_copied_without_recursion() -> None:
    x = mt.arange(12.0)
    for _ in range(5000):
        x = x.view(12)
    for way in DEEP.values():
        assert way(x).tolist() == x.tolist()


@pytest.mark.parametrize("way", WAYS)
def test_a_view_that_was_copied_is_a_view_in_every_mode(way: str) -> None:
    base = mt.ones(4)
    base, view = WAYS[way]([base, base[1:3]]) if way != "copy" else (base, copy.copy(base[1:3]))

    @mt.jit
    def written(x: mt.Tensor) -> mt.Tensor:
        base.add_(x)
        return view * 1

    assert written(mt.ones(())).tolist() == [2.0, 2.0] and view.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("way", DEEP)
def test_parameters_are_copied_without_their_gradients(way: str) -> None:
    """As in PyTorch: a copy of a network that is being trained begins with none, and adds to none."""
    model = mt.nn.Sequential(mt.nn.Linear(3, 2), mt.nn.BatchNorm1d(2))
    for _ in range(2):
        model(mt.ones(4, 3)).sum().backward()
    copied = DEEP[way](model)
    assert [each.grad for each in copied.parameters()] == [None] * 4
    copied(mt.ones(4, 3)).sum().backward()
    assert copied[1].bias.grad.tolist() == [4.0, 4.0] and model[1].bias.grad.tolist() == [8.0, 8.0]


def test_a_module_its_optimizer_and_its_scheduler_stay_together() -> None:
    model = mt.nn.Linear(3, 2)
    optimizer = mt.optim.Adam(model.parameters(), lr=0.1)
    scheduler = mt.optim.lr_scheduler.StepLR(optimizer, 1)
    for way in DEEP.values():
        m, o, s = way((model, optimizer, scheduler))
        m(mt.ones(1, 3)).sum().backward()
        o.step()
        s.step()
        assert m.weight.tolist() != model.weight.tolist() and o.param_groups[0]["lr"] != 0.1
        assert s.optimizer is o and o.param_groups[0]["params"][0] is m.weight
        assert optimizer.param_groups[0]["lr"] == 0.1 and model.weight.grad is None


def test_a_model_is_stored_with_numpy_as_the_readme_says(tmp_path: Path) -> None:
    model, other = mt.nn.Linear(3, 2), mt.nn.Linear(3, 2)
    arrays: dict[str, Any] = {name: t.numpy() for name, t in model.state_dict().items()}
    np.savez(tmp_path / "model.npz", **arrays)
    with np.load(tmp_path / "model.npz") as stored:
        other.load_state_dict({name: mt.tensor(array) for name, array in stored.items()})
    assert other.weight.tolist() == model.weight.tolist()


def test_a_traced_value_cannot_be_copied() -> None:
    with pytest.raises(TypeError, match="no value that could be copied"):
        mt.jit(lambda x: copy.deepcopy(x * 2))(mt.ones(2))


def test_a_jitted_module_is_still_a_module() -> None:
    jitted = mt.jit(mt.nn.Sequential(mt.nn.Linear(2, 2), mt.nn.Dropout(0.5)))
    assert len(list(jitted.parameters())) == 2
    jitted.eval()
    assert jitted(mt.ones(1, 2)).tolist() == jitted(mt.ones(1, 2)).tolist()
    with pytest.raises(AttributeError):
        mt.jit(lambda x: x).parameters()  # type: ignore[attr-defined]


def test_a_linear_layer_says_what_it_takes() -> None:
    with pytest.raises(mt.errors.ShapeError, match=r"with 4 features; the weight .* takes 3"):
        mt.nn.Linear(3, 2)(mt.ones(5, 4))


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_a_module_with_a_jitted_method_runs_its_own_weights(way: str, used: bool) -> None:
    model, x = Jitting(), mt.ones(1, 4)
    if used:
        model(x)
    twin = WAYS[way](model)
    twin.layer = mt.nn.Linear(4, 3)
    assert twin(x).tolist() == twin.layer(x).relu().tolist() and model(x).tolist() == model.layer(x).relu().tolist()


def test_a_function_that_pickle_cannot_reach_gives_its_message() -> None:
    for make in (lambda: lambda x: x, lambda: mt.jit(lambda x: x), lambda: mt.freeze(lambda x: x, mt.ones(1))):
        with pytest.raises((pickle.PicklingError, AttributeError), match=r"Can't (pickle|get local object) .*<lambda>"):
            pickle.dumps(make())


def test_a_frozen_function_goes_on_with_the_weights_that_it_was_frozen_with() -> None:
    model = mt.nn.Linear(4, 3).eval()
    frozen = mt.freeze(model, mt.ones(2, 4))
    expected = frozen(mt.ones(5, 4)).tolist()
    twin, its = pickle.loads(pickle.dumps((frozen, model)))
    its.weight.detach().zero_()
    with pytest.warns(mt.errors.TracingWarning, match="MT113"):
        assert twin(mt.ones(5, 4)).tolist() == expected
    model.weight.detach().zero_()
    with pytest.warns(mt.errors.TracingWarning, match="MT113"), pytest.raises(TypeError, match=r"frozen\.save"):
        pickle.dumps(frozen)


def test_a_traced_value_says_what_to_copy_in_its_place() -> None:
    for way in WAYS.values():
        with pytest.raises(TypeError, match=r"x\.clone\(\)"):
            mt.jit(lambda x, way=way: way(x * 2))(mt.ones(2))


def test_a_deferred_value_is_computed() -> None:
    for way in WAYS.values():
        w = mt.ones(2)
        with mt.lazy():
            w.mul_(2)
            y = w * 3
            assert way(y).tolist() == [6.0, 6.0] and way(w).tolist() == [2.0, 2.0] and way(y[1:]).tolist() == [6.0]


# Errors --------------------------------------------------------------------------------------------------------


def _every(kind: type[BaseException]) -> list[type[BaseException]]:
    return [kind, *(deeper for each in kind.__subclasses__() for deeper in _every(each))]


def _error(kind: type[BaseException]) -> BaseException:
    """One that was raised, with a note, a cause and a place."""
    make: Any = kind
    if kind is mt.errors.ParseError:
        error = make("a word", 3, why="of a rule")
    else:
        error = make("no") if kind is mt.errors.CommandError else make("MT201", "what", why="why", fix="fix")
    if isinstance(error, mt.errors.MinitorchError):
        error.locate("line 5")
    error.add_note("a note")
    error.more = [1, 2]
    try:
        raise error from ValueError("the cause")
    except kind as caught:
        return caught


ERRORS = [kind for kind in _every(mt.errors.MinitorchError) if kind.__module__.startswith("minitorch.")]


def _facts(error: Any) -> Any:
    return type(error), str(error), error.args, {**vars(error)}, type(error.__cause__), str(error.__cause__)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*ERRORS, mt.errors.CommandError], ids=lambda kind: kind.__name__)
def test_every_error_survives(kind: type[BaseException], way: str) -> None:
    error = _error(kind)
    twin = WAYS[way](error)
    if kind is mt.errors.CommandError:  # as any exception of Python's
        assert (type(twin), str(twin), twin.__notes__) == (kind, str(error), ["a note"])
        return
    assert _facts(twin) == _facts(error)
    assert twin.code in mt.errors.codes() and twin.what == error.what  # type: ignore[attr-defined]
    twin.locate("elsewhere")
    assert _facts(twin) == _facts(error)


def test_a_cause_that_cannot_be_pickled_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # Dask, where a test has imported it, has errors pickled by a function of its own.
    monkeypatch.delitem(copyreg.dispatch_table, mt.errors.ShapeError, raising=False)
    error = mt.errors.ShapeError("MT201", "what")
    error.__cause__ = ValueError(lambda: None)
    assert pickle.loads(pickle.dumps(error)).__cause__ is None and error.__cause__ is not None


def fail(at: int) -> Any:
    """Raise an error of the engine, or give a jitted result, for a pool."""
    if at % 2:
        return mt.ones(2, 3) @ mt.ones(2, 3)
    return decorated(mt.ones(2) * at), mt.ones(4)[1:3]


def test_errors_and_results_go_through_pools() -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        jitted = mt.jit(mt.nn.Linear(2, 2))
        for _ in range(2):  # the executor is not broken by an error
            with pytest.raises(mt.errors.ShapeError, match="MT201") as caught:
                executor.submit(fail, 1).result(120)
            assert caught.value.code == "MT201"
            assert executor.submit(fail, 2).result(120)[0].tolist() == [6.0, 6.0]
        assert executor.submit(jitted, mt.ones(1, 2)).result(120).tolist() == jitted(mt.ones(1, 2)).tolist()
    with spawn.Pool(1) as pool:
        with pytest.raises(mt.errors.ShapeError, match="MT201"):
            pool.apply_async(fail, (1,)).get(120)
        assert pool.apply_async(fail, (2,)).get(120)[1].tolist() == [1.0, 1.0]
