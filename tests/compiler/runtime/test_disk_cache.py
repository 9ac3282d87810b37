"""Code from the disk is what this user wrote, for this machine, to the byte; trouble costs time, not results."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import llvmlite
import pytest

import minitorch
from minitorch.compiler.codegen import machine
from minitorch.compiler.codegen.host import host
from minitorch.compiler.runtime import cache
from minitorch.compiler.runtime.cache import HEADER, DiskCache

KEY, CODE = bytes(range(32)), os.urandom(3000)
INT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def plus(number: int) -> str:
    return f"define i64 @plus(i64 %x) {{ %y = add i64 %x, {number}  ret i64 %y }}"


def key_of(number: int) -> bytes:
    return number.to_bytes(32, "big")


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    result = DiskCache(tmp_path / "cache")
    result.put(KEY, CODE)
    assert result.get(KEY) == CODE
    return result


def test_the_folder_is_the_owners(disk: DiskCache) -> None:
    if hasattr(os, "geteuid"):
        assert stat.S_IMODE(disk.folder.stat().st_mode) == 0o700
        assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in disk.folder.iterdir())
    assert [file.name for file in disk.folder.iterdir()] == [KEY.hex() + ".o"]


def test_another_key_is_another_entry(disk: DiskCache) -> None:
    assert disk.get(key_of(5)) is None
    disk.put(key_of(5), b"")
    assert disk.get(key_of(5)) == b"" and disk.get(KEY) == CODE


def test_the_key_is_all_that_the_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    here = host()
    keys = [cache.key("text"), cache.key("text2")]
    for field in ("triple", "cpu", "features"):
        changed: dict[str, Any] = {field: "other"}
        other = replace(here, **changed)
        with monkeypatch.context() as patch:
            patch.setattr(cache, "host", lambda other=other: other)
            keys.append(cache.key("text"))
    for module, name in ((minitorch, "__version__"), (llvmlite, "__version__"), (cache, "MAGIC")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, b"other")
            keys.append(cache.key("text"))
    assert len(set(keys)) == len(keys)
    assert cache.key("text") == keys[0]


def test_a_damaged_byte_anywhere_is_noticed(disk: DiskCache) -> None:
    file = disk._path(KEY)
    good = file.read_bytes()
    places = [*range(HEADER.size), HEADER.size, HEADER.size + len(CODE) // 2, len(good) - 1]
    for place in places:
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert disk.get(KEY) is None, place
    disk.put(KEY, CODE)
    assert file.read_bytes() == good and disk.get(KEY) == CODE


@pytest.mark.parametrize(
    "damage",
    [
        lambda good: b"",
        lambda good: good[:10],
        lambda good: good[: HEADER.size],
        lambda good: good[:-1],
        lambda good: good + b"\0",
        lambda good: good * 2,
        lambda good: bytes(len(good)),
    ],
)
def test_a_file_of_another_length_is_noticed(disk: DiskCache, damage: Callable[[bytes], bytes]) -> None:
    file = disk._path(KEY)
    file.write_bytes(damage(file.read_bytes()))
    assert disk.get(KEY) is None


def test_an_entry_under_another_name_is_noticed(disk: DiskCache) -> None:
    disk._path(KEY).rename(disk._path(key_of(7)))
    assert disk.get(key_of(7)) is None and disk.get(KEY) is None


posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners as POSIX has them")


@posix
def test_a_folder_in_the_place_of_an_entry_is_no_entry(disk: DiskCache) -> None:
    file = disk._path(KEY)
    file.unlink()
    file.mkdir()
    disk.put(KEY, CODE)
    assert disk.get(KEY) is None
    disk.clear()


@posix
@pytest.mark.parametrize(("mode", "foreign"), [(0o777, False), (0o720, False), (0o700, True)])
def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, foreign: bool
) -> None:
    DiskCache(tmp_path).put(KEY, CODE)
    tmp_path.chmod(mode)
    if foreign:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    disk = DiskCache(tmp_path)
    with pytest.warns(RuntimeWarning, match="another user" if foreign else "other users") as caught:
        assert disk.get(KEY) is None
    disk.put(key_of(1), CODE)
    assert disk.get(key_of(1)) is None and disk.clear() == 0
    assert len(caught) == 1, "and no other warning"
    tmp_path.chmod(0o700)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    disk = DiskCache(tmp_path / "file" / "cache")
    disk.put(KEY, CODE)
    disk.put(KEY, CODE)
    assert disk.get(KEY) is None
    assert disk.sizes() == [] and disk.clear() == 0


def test_a_folder_that_cannot_be_written(disk: DiskCache) -> None:
    disk.folder.chmod(0o500)
    try:
        disk.put(key_of(1), CODE)  # works for the superuser
        assert disk.get(KEY) == CODE
        assert disk.get(key_of(1)) in (None, CODE)
    finally:
        disk.folder.chmod(0o700)


@pytest.mark.parametrize("step", ["mkstemp", "write", "replace"])
def test_a_full_disk(disk: DiskCache, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    class Full:
        def __init__(self, descriptor: int, mode: str) -> None:
            self.descriptor = descriptor

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *exception: object) -> None:
            os.close(self.descriptor)

        write = full

    with monkeypatch.context() as patch:
        if step == "mkstemp":
            patch.setattr("tempfile.mkstemp", full)
        elif step == "write":
            patch.setattr(os, "fdopen", Full)
        else:
            patch.setattr(os, "replace", full)
        disk.put(key_of(1), CODE)
    assert disk.get(key_of(1)) is None and disk.get(KEY) == CODE
    assert len(list(disk.folder.iterdir())) == 1, "nothing half-written stays"


def test_the_limit_removes_what_was_used_longest_ago(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, limit=10 * 4096)
    for number in range(9):
        disk.put(key_of(number), CODE)
        os.utime(disk._path(key_of(number)), (number, number))
    assert disk.get(key_of(0)) == CODE  # used again, so it may stay
    disk.put(key_of(9), CODE)
    disk.put(key_of(10), CODE)
    left = [number for number in range(11) if disk.get(key_of(number))]
    assert left == [0, 5, 6, 7, 8, 9, 10]
    assert len(disk.sizes()) == 7


def test_few_keys_have_a_process_look_through_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = DiskCache(tmp_path)
    for number in range(9):
        full.put(key_of(number), CODE)
    disk = DiskCache(tmp_path, limit=4 * 4096)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda folder: pytest.fail("it looks"))
        disk.put(b"\xff" * 32, CODE)
    assert len(disk.sizes()) == 10
    disk.put(key_of(9), CODE)
    assert len(disk.sizes()) == 3 and disk.get(key_of(9)) == CODE


def test_files_of_others_stay(disk: DiskCache) -> None:
    thesis = disk.folder / "thesis.tex"
    thesis.write_text("precious")
    old, new = (disk.folder / f"{KEY.hex()}.o.{name}.tmp" for name in ("abcd1234", "abcd5678"))
    for file in (old, new):
        file.write_text("half")
    os.utime(old, (0, 0))
    disk.limit = 1
    disk.put(key_of(1), CODE)
    assert thesis.exists() and not old.exists() and new.exists()
    disk.put(key_of(1), CODE)
    disk.clear()
    assert [file.name for file in disk.folder.iterdir()] == ["thesis.tex"]


def test_sizes(disk: DiskCache) -> None:
    assert disk.sizes() == [HEADER.size + len(CODE)]
    assert disk.clear() == 1 and disk.sizes() == []


WRITER = """
import sys
from pathlib import Path
from minitorch.compiler.runtime.cache import DiskCache
disk = DiskCache(Path(sys.argv[1]), limit=40 * 4096)
bad = 0
for turn in range(150):
    number = turn % 30
    key = number.to_bytes(32, "big")
    code = bytes([number]) * (2000 + 37 * number)
    disk.put(key, code)
    found = disk.get(key)
    bad += found is not None and found != code
print(bad)
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [writer.communicate()[0].split() for writer in writers] == [["0"]] * 3
    assert all(file.suffix == ".o" for file in tmp_path.iterdir())


def test_code_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    compiled: list[str] = []
    compile_all = machine.compile_all

    def spy(texts: Iterable[str], *options: Any) -> list[bytes]:
        texts = list(texts)
        compiled.extend(texts)
        return compile_all(texts, *options)

    monkeypatch.setattr(machine, "compile_all", spy)
    texts = [plus(1), plus(2), plus(1)]
    first, second, third = cache.libraries(texts, "plus")
    assert first is third and compiled == texts[:2]
    assert [library.function("plus", INT)(10) for library in (first, second)] == [11, 12]
    assert cache.libraries(texts, "plus")[1] is second  # from memory
    del first, second, third
    (again,) = cache.libraries([plus(2)], "plus")  # from the disk
    assert again.function("plus", INT)(1) == 3 and compiled == texts[:2]
    del again
    for file in tmp_path.iterdir():
        file.write_bytes(b"damaged" + file.read_bytes()[7:])
    (again,) = cache.libraries([plus(2)], "plus")
    assert again.function("plus", INT)(1) == 3 and compiled == [*texts[:2], plus(2)]


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"MINITORCH_CACHE_DIR": "/here"}, "/here"),
        ("linux", {"MINITORCH_CACHE_DIR": "", "XDG_CACHE_HOME": "/xdg"}, "/xdg/minitorch"),
        ("linux", {}, "/home/me/.cache/minitorch"),
        ("darwin", {}, "/home/me/Library/Caches/minitorch"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/minitorch"),
    ],
)
def test_where_the_folder_is(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: str
) -> None:
    for name in ("MINITORCH_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", "/home/me"))
    assert cache.default_folder() == Path(folder)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path / f"cache{time.time_ns()}"))
    for action, words in (("info", "0 entries"), ("clear", "0 entries removed")):
        cache.cache_command(Namespace(action=action))
        assert words in capsys.readouterr().out
    cache.libraries([plus(3), plus(4)], "plus")
    cache.cache_command(Namespace(action="info"))
    assert "2 entries" in capsys.readouterr().out
    cache.cache_command(Namespace(action="clear"))
    assert "2 entries removed" in capsys.readouterr().out
