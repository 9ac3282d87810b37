"""`mt.load(into=...)` writes all of a training's state or nothing of it, whatever a checkpoint says."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import CheckpointError
from minitorch_checkpoints import safetensors
from tests.checkpoints.test_checkpoints import bits


def training() -> dict[str, Any]:
    """Objects of all kinds, some with a state that a step has made."""
    model = mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.BatchNorm1d(3), mt.nn.Linear(3, 1))
    momentum = mt.optim.SGD([{"params": model[0].parameters()}, {"params": model[2].parameters()}], 0.1, momentum=0.5)
    adam = mt.optim.Adam(model.parameters())
    model(mt.randn(4, 2)).sum().backward()
    for optimizer in (momentum, adam):
        optimizer.step()
    scheduler = mt.optim.lr_scheduler.StepLR(momentum, 2)
    scheduler.step()
    scaler = mt.amp.GradScaler("cpu", init_scale=float(mt.randint(2, 9, (1,)).item()))
    return {
        "adam": adam,
        "model": model,
        "momentum": momentum,
        "random": mt.Generator(),
        "scaler": scaler,
        "scheduler": scheduler,
    }


def plain(value: Any) -> Any:
    """The states, as dicts, lists and tensors that can be changed."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, mt.Generator):
        return value.get_state()
    return plain(value.state_dict()) if hasattr(value, "state_dict") else value


def ways(value: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all parts of nested data."""
    yield keys
    if isinstance(value, dict | list | tuple):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from ways(each, (*keys, key))


def changed(value: Any, keys: tuple[Any, ...], new: Any) -> Any:
    """The data with another part, or without it."""
    if not keys:
        return new
    parts = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    if len(keys) == 1 and new is GONE:
        del parts[keys[0]]
    else:
        parts[keys[0]] = changed(parts[keys[0]], keys[1:], new)
    return parts if isinstance(value, dict) else type(value)(parts.values())


GONE = object()
WRONGS = {
    "gone": GONE, "none": None, "text": "x", "dict": {"x": 1}, "list": [], "lists": [[1], [2]], "shape": mt.zeros(7, 7),
    "fractions": mt.zeros(2), "nan": float("nan"), "negative": -3, "large": 10**400, "true": True,
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONGS)
def test_a_wrong_part_of_a_state_is_refused_by_name_and_nothing_is_loaded(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    saved, objects = plain(training()), training()
    before, refused = bits(plain(objects)), 0
    for keys in ways(saved):
        if len(keys) > 1 or (len(keys) == 1 and wrong != "gone"):
            mt.save(changed(saved, keys, WRONGS[wrong]), tmp_path / "x.safetensors")
            try:
                mt.load(tmp_path / "x.safetensors", into=objects)
            except CheckpointError as error:
                refused += 1
                assert error.code == "MT805" and keys[0] in error.what.splitlines()[1], (keys, error)
                assert bits(plain(objects)) == before, keys
            else:
                objects = training()
                before = bits(plain(objects))
    assert refused >= (20 if wrong in ("nan", "negative", "true") else 40)


def test_a_flag_that_a_recorded_step_has_read_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    w = mt.tensor([1.0], requires_grad=True)
    optimizer, other = mt.optim.Adam([w], lr=0.5), mt.optim.Adam([w], lr=0.25, amsgrad=True)

    @mt.jit
    def step() -> mt.Tensor:
        loss = (w * w).sum()
        optimizer.minimize(loss)
        return loss

    step()
    before = bits(plain(optimizer))
    mt.save({"o": other}, tmp_path)
    with pytest.raises(CheckpointError, match="MT805") as caught:
        mt.load(tmp_path, into={"o": optimizer})
    assert "o: amsgrad was " in caught.value.what and bits(plain(optimizer)) == before


def test_what_else_is_read_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    """A type that tensors do not have, and bools of other bytes, beside an optimiser and in a module."""

    class Masked(mt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = mt.nn.Parameter(mt.zeros(2))
            self.register_buffer("mask", mt.tensor([True, False]))

    for kind, content in (("BOOL", b"\1\2"), ("F8_E4M3", b"\0\0")):
        model = Masked()
        mt.save({"model": model.state_dict() | {"weight": mt.ones(2)}, "rest": mt.zeros(2).bool()}, tmp_path)
        for name in ("model.mask", "rest"):
            memory = (tmp_path / "model.safetensors").read_bytes()
            header = safetensors.read_header(io.BytesIO(memory), len(memory), "x")
            entry = header.entries[name]
            start = header.start + entry.begin
            spoilt = memory[:start] + content + memory[start + 2 :]
            row = f'"{name}":{{"dtype":"'.encode()
            spoilt = spoilt.replace(row + b"BOOL", row + kind.encode())
            spoilt = (int.from_bytes(spoilt[:8], "little") + len(spoilt) - len(memory)).to_bytes(8, "little") + spoilt[
                8:
            ]
            (tmp_path / f"{name}.safetensors").write_bytes(spoilt)
            with pytest.raises(CheckpointError, match="MT804"):
                mt.load(tmp_path / f"{name}.safetensors", into={"model": model})
            assert model.weight.tolist() == [0.0, 0.0]


def test_an_object_of_ones_own_is_loaded_after_the_checks_and_before_the_others(tmp_path: Path) -> None:
    class Own:
        def __init__(self) -> None:
            self.states: list[Any] = []

        def state_dict(self) -> dict[str, Any]:
            return {"x": 1}

        def load_state_dict(self, state: Any) -> str:
            self.states.append(state)
            if state != {"x": 1}:
                raise OverflowError
            return "done"

    class Later(mt.optim.SGD):
        def load_state_dict(self, state: Any) -> None:
            raise OverflowError

    model, own = mt.nn.Linear(1, 1), Own()
    saved: dict[str, Any] = {
        "model": {"weight": mt.ones(1, 1), "bias": mt.ones(1)},
        "own": own,
        "s": mt.Generator(1),
        "rest": {"y": 2},
    }
    mt.save(saved, tmp_path)
    generator = mt.Generator(2)
    with pytest.raises(CheckpointError, match="MT805"):
        mt.load(tmp_path, into={"own": own, "model": mt.nn.Linear(2, 2)})
    assert own.states == []
    found = mt.load(tmp_path, into={"own": own, "model": model, "s": generator})
    assert found == {"model": ([], []), "own": "done", "s": None, "rest": {"y": 2}}
    assert mt.equal(generator.get_state(), saved["s"].get_state()) and model.weight.item() == 1.0

    for wrong in (own, Later(model.parameters(), 0.1)):
        mt.save({**saved, "own": {"x": 2}, "model": mt.nn.Linear(1, 1)}, tmp_path)
        with pytest.raises(OverflowError):
            mt.load(tmp_path, into={"model": model, "own": wrong})
        assert model.weight.item() == 1.0 and model.bias.item() == np.float32(1)


def test_numbers_and_texts_in_the_places_of_objects_are_returned(tmp_path):
    model = mt.nn.Linear(2, 1)
    mt.save({"model": model, "epoch": 3, "name": "a"}, tmp_path)
    found = mt.load(tmp_path, into={"model": model, "epoch": 0, "name": ""})
    assert (found["epoch"], found["name"]) == (3, "a")
    with pytest.raises(TypeError, match=r"into\['epoch'\] is a list, .* leave it out"):
        mt.load(tmp_path, into={"model": model, "epoch": []})
