"""Downloads that students made to do harm: whatever is in one, it is the fault of this person's work alone."""

from __future__ import annotations

import errno
import io
import os
import random
import stat
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from minitorch.__main__ import main
from minitorch_grading.grading.collecting.attempts import attempts
from minitorch_grading.grading.collecting.entries import BYTES
from tests.grading.classes import EXERCISE, course
from tests.grading.collecting.downloads import ALL, DONE, collect, folder, moodle, packed, tree, work


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return course(tmp_path / "course")


def _link(archive: zipfile.ZipFile) -> None:
    about = zipfile.ZipInfo(f"Eve_9_assignsubmission_file_/{EXERCISE}.ipynb")
    about.create_system, about.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    archive.writestr(about, "/etc/passwd")


def _many(archive: zipfile.ZipFile) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as own:
        for number in range(1001):
            own.writestr(f"{number}.ipynb", "")
    archive.writestr("Eve_9_assignsubmission_file_/many.zip", inner.getvalue())


def _bomb(archive: zipfile.ZipFile) -> None:
    archive.writestr(f"Eve_9_assignsubmission_file_/{EXERCISE}.ipynb", b"0" * 50_000_000)


def _zip_bomb(archive: zipfile.ZipFile) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as own:
        for number in range(20):
            own.writestr(f"{number}.ipynb", b"0" * 4_000_000)
    archive.writestr("Eve_9_assignsubmission_file_/bomb.zip", inner.getvalue())


def _matryoshka(archive: zipfile.ZipFile) -> None:
    content = DONE.encode()
    for _ in range(5):
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w") as own:
            own.writestr("x.zip" if content[:2] == b"PK" else f"{EXERCISE}.ipynb", content)
        content = inner.getvalue()
    archive.writestr("Eve_9_assignsubmission_file_/doll.zip", content)


def _own(method: int) -> Callable[[zipfile.ZipFile], None]:
    """A student's zip that unpacks to more memory than there is, and one of which a bit is wrong."""

    def put(archive: zipfile.ZipFile) -> None:
        inner = own({"a.ipynb": "0" * 6 * 10**7, f"{EXERCISE}.ipynb": DONE}, method)
        archive.writestr("Eve_9_assignsubmission_file_/own.zip", inner)
        archive.writestr("Dan_8_assignsubmission_file_/own.zip", broken(own({f"{EXERCISE}.ipynb": DONE}, method)))

    return put


def own(files: Mapping[str, str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip that a student has made."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def broken(content: bytes) -> bytes:
    """A zip with wrong bits where its first file is."""
    return content[:48] + bytes(255 - each for each in content[48:80]) + content[80:]


def _named(name: str) -> Callable[[zipfile.ZipFile], None]:
    """A member with a name that `ZipFile.writestr` would not write, in the download and in a student's zip."""

    def put(archive: zipfile.ZipFile) -> None:
        inner = io.BytesIO()
        for each in (zipfile.ZipFile(inner, "w"), archive):
            about = zipfile.ZipInfo()
            about.filename = name
            with each.open(about, "w") as file:
                file.write(DONE.encode())
            if each is not archive:
                each.close()
        archive.writestr("Eve_9_assignsubmission_file_/own.zip", inner.getvalue())

    return put


def _at(name: str) -> Callable[[zipfile.ZipFile], None]:
    return lambda archive: archive.writestr(name, DONE)


def _twice(archive: zipfile.ZipFile) -> None:
    with warnings.catch_warnings(action="ignore"):
        for _ in range(2):
            archive.writestr(f"Eve_9_assignsubmission_file_/{EXERCISE}.ipynb", DONE)


HOSTILE: dict[str, Callable[[zipfile.ZipFile], None]] = {
    "path up": _at("../../../../tmp/planted.ipynb"),
    "path up inside": _at(f"Eve_9_assignsubmission_file_/../../../{EXERCISE}.ipynb"),
    "absolute path": _at("/tmp/planted.ipynb"),
    "drive": _at("C:\\planted.ipynb"),
    "backslashes": _at("..\\..\\planted.ipynb"),
    "student up": _at(f"../{EXERCISE}/{EXERCISE}.ipynb"),
    "link": _link,
    "many files": _many,
    "bomb": _bomb,
    "zip bomb": _zip_bomb,
    "zips in zips": _matryoshka,
    "no zip": _at("Eve_9_assignsubmission_file_/not.zip"),
    "long name": _at("Eve_9_assignsubmission_file_/" + "x" * 5000 + ".ipynb"),
    "no name": _named(""),
    "a name with NUL": _named("a\0b.ipynb"),
    "a name of dots": _named("../../x.ipynb"),
    "bzip2": _own(zipfile.ZIP_BZIP2),
    "lzma": _own(zipfile.ZIP_LZMA),
    "deflate": _own(zipfile.ZIP_DEFLATED),
    "twice": _twice,
    "deep": _at("Eve_9_assignsubmission_file_/" + "x/" * 2000 + "y.ipynb"),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_zip_writes_nowhere_else_and_harms_nobody(
    hostile: Callable[[zipfile.ZipFile], None], root: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "d.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        hostile(archive)
        archive.writestr(f"Ana_1_assignsubmission_file_/{EXERCISE}.ipynb", DONE)
    outside = set(tmp_path.iterdir())
    _, said = collect(root, tmp_path / "d.zip")
    assert work(root)["ana"] == DONE
    assert work(root).keys() <= {"ana", "dan", "eve"} and not [row for row in said["left_out"] if "ana" in row["what"]]
    assert set(tmp_path.iterdir()) == outside and not Path("/tmp/planted.ipynb").exists()
    written = [path for path in root.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in written) < BYTES + 1_000_000
    assert not [path for path in root.rglob("*") if path.is_symlink()]
    assert {path.relative_to(root).parts[0] for path in written} <= {"submitted", "collected", "exercises", "solutions"}


@pytest.mark.parametrize("cut", [10, 100, -1, -30])
def test_a_zip_that_is_cut_off_is_refused_or_read_as_far_as_it_is_whole(cut: int, root: Path, tmp_path: Path) -> None:
    whole = packed(tmp_path / "d.zip", moodle("Ana", 1, DONE)).read_bytes()
    (tmp_path / "d.zip").write_bytes(whole[:cut])
    status = main(["collect", str(tmp_path / "d.zip"), "--to", str(root / "submitted")])
    assert status == 2 and work(root) == {}


def test_one_damaged_member_is_one_student_s_damage(root: Path, tmp_path: Path) -> None:
    path = packed(tmp_path / "d.zip", moodle("Ana", 1, DONE) | moodle("Bo", 2, ALL))
    content = bytearray(path.read_bytes())
    place = content.index(b"Bo_2") + 80
    content[place : place + 20] = bytes(20)
    path.write_bytes(content)
    status, _ = collect(root, path)
    found = work(root)
    assert status == 1 and "damaged" in found.pop("bo") and found == {"ana": DONE}
    assert attempts(root, "bo", EXERCISE)[0].problem


def test_links_in_a_folder_are_not_followed(root: Path, tmp_path: Path) -> None:
    source = folder(tmp_path / "d", moodle("Ana", 1, DONE))
    (tmp_path / "secret").write_text(ALL)
    target = source / "Eve_2_assignsubmission_file_"
    target.mkdir()
    (target / f"{EXERCISE}.ipynb").symlink_to(tmp_path / "secret")
    (source / "Mal_3_assignsubmission_file_").symlink_to(tmp_path)
    os.mkfifo(source / "pipe.zip")
    collect(root, source)
    assert work(root)["ana"] == DONE and ALL not in {path.read_text() for path in root.rglob("c*/**/*.ipynb")}


def test_a_folder_that_may_not_be_read_is_told(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a student who has closed it in nbgrader's exchange; root may read it all the same."""
    source = folder(tmp_path / "d", moodle("Ana", 1, DONE) | moodle("Eve", 2, DONE))
    closed, scandir = source / "Eve_2_assignsubmission_file_", os.scandir

    def refusing(path: str | int) -> object:  # `shutil.rmtree` gives numbers
        if path == str(closed):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    status, said = collect(root, source)
    remarks = {row["student"]: row["remark"] for row in said["collected"]}
    assert status == 1 and not remarks["ana"] and "Permission denied" in remarks["eve"]


def test_memory_that_is_not_there_is_one_student_s_fault(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stripped(content: bytes, largest: int) -> bytes:
        if ALL.encode() == content:
            raise MemoryError
        return content

    monkeypatch.setattr("minitorch.classroom.grading.collecting.gather.stripped", stripped)
    status, said = collect(root, packed(tmp_path / "d.zip", moodle("Ana", 1, DONE) | moodle("Eve", 2, ALL)))
    remarks = {row["student"]: row["remark"] for row in said["collected"]}
    assert status == 1 and not remarks["ana"] and "MemoryError" in remarks["eve"]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The same with some bytes changed, taken out, put in or cut off."""
    made = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(made) + 1)
        flipped = bytes(each ^ 1 << rng.randrange(8) for each in made[place : place + 1])
        signature = rng.choice([b"PK\1\2", b"PK\3\4", b"PK\5\6", b"\xff" * 4, bytes(4)])
        new = rng.choice([flipped, flipped, b"\0", b"\xff", signature, rng.randbytes(rng.choice([0, 1, 2, 4])), None])
        if new is None:
            del made[place:]
        else:
            made[place : place + rng.choice([len(new), len(new), 0, 1])] = new
    return bytes(made)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_any_zip_of_a_student_s_leaves_the_others_as_they_are(
    method: int, root: Path, tmp_path: Path, sweep: bool
) -> None:
    """Of one that is changed anywhere, what it holds is collected, or the student is listed with the reason."""
    whole = own({f"a/{EXERCISE}.ipynb": DONE, "notes.txt": "n"}, method)
    rng = random.Random(f"zips {method}")
    for batch in range(50 if sweep else 1):
        zips = {f"e{number}": mutated(whole, rng) for number in range(100)}
        with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
            for number, (name, content) in enumerate(zips.items()):
                archive.writestr(f"{name}_{number + 100 * batch}_assignsubmission_file_/own.zip", content)
            archive.writestr(f"Ana_99999_assignsubmission_file_/{EXERCISE}.ipynb", DONE)
        outside = set(tmp_path.iterdir())
        target = course(tmp_path / "courses" / str(batch))
        status, said = collect(target, tmp_path / "d.zip")
        remarks = {row["student"]: row["remark"] for row in said["collected"]}
        found = work(target)
        assert remarks.keys() == {"ana", *zips} and found["ana"] == DONE and not remarks["ana"]
        assert all(found[name] == DONE or remarks[name] for name in zips)
        assert status == 1 and 0 < sum(map(bool, remarks.values())) <= 100
        kept = {path.parts[-5]: path.read_bytes() for path in target.glob(f"collected/e*/{EXERCISE}/*/files/*.zip")}
        assert kept == zips  # as it came
        assert {path.name for path in set(tmp_path.iterdir()) - outside} <= {"courses"}


def test_any_download_is_collected_or_refused(root: Path, tmp_path: Path, sweep: bool) -> None:
    """What is changed here is the platform's own zip."""
    whole = packed(tmp_path / "d.zip", moodle("Ana", 1, DONE) | moodle("Eve", 2, ALL, "notes.txt")).read_bytes()
    before = tree(root)
    rng = random.Random("downloads")
    for _ in range(5000 if sweep else 100):
        (tmp_path / "d.zip").write_bytes(mutated(whole, rng))
        assert main(["collect", str(tmp_path / "d.zip"), "--to", str(root / "submitted")]) in (0, 1, 2)
        assert {path.name for path in root.iterdir()} <= {"submitted", "collected", "exercises", "solutions"}
        assert {path.name for path in tmp_path.iterdir()} == {"d.zip", "course"}
    assert before.items() <= {**tree(root), **before}.items()


def test_a_fault_of_one_student_s_folder_is_one_student_s(root: Path, tmp_path: Path) -> None:
    """A note that is damaged, and a folder where a file has to be."""
    source = packed(tmp_path / "d.zip", moodle("Ana", 1, DONE) | moodle("Bo", 2, DONE) | moodle("Eve", 3, DONE))
    collect(root, source)
    next((root / "collected" / "bo").rglob("attempt.json")).write_text("{")
    path = root / "submitted" / "eve" / EXERCISE / f"{EXERCISE}.ipynb"
    path.unlink()
    (path / "within").mkdir(parents=True)
    status, said = collect(root, source)
    assert status == 1 and {row["what"] for row in said["left_out"]} == {f"bo {EXERCISE}", f"eve {EXERCISE}"}
    assert [row["student"] for row in said["collected"]] == ["ana"]
