"""Errors that teach: each code has a page, whose first snippet fails with just that code and whose second one runs."""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import linecache
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

import minitorch as mt
from minitorch import errors
from minitorch.__main__ import main
from minitorch.errors import MinitorchError, TracingWarning, codes

ROOT = Path(__file__).parents[2]
PAGES = Path(errors.__file__).parent / "error_pages"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUILTINS = {
    "TracedValueError": TypeError,
    "TracingError": RuntimeError,
    "ArgumentError": TypeError,
    "ShapeError": ValueError,
    "DTypeError": TypeError,
    "DeviceError": RuntimeError,
    "ShardingError": ValueError,
    "FeedError": ValueError,
    "FetchError": ValueError,
    "FrozenError": ValueError,
    "AutogradError": RuntimeError,
    "NonFiniteError": FloatingPointError,
    "MismatchError": ArithmeticError,
    "ObserverError": RuntimeError,
    "GraphError": ValueError,
    "ParseError": ValueError,
    "ScheduleError": ValueError,
    "QuantizationError": ValueError,
    "OnnxError": ValueError,
    "TranslationError": ValueError,
    "CheckpointError": ValueError,
}


def run(snippet: str) -> None:
    """Run a snippet as the file ``train.py``, the name that its messages show, in an empty folder: some write files."""
    linecache.cache["train.py"] = (len(snippet), None, snippet.splitlines(True), "train.py")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(compile(snippet, "train.py", "exec"), {"__name__": "__main__"})


def outcome(snippet: str) -> tuple[str, str, str] | None:
    """How a snippet goes wrong: class, code and message, as Python prints it; None if it does not."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            run(snippet)
        except MinitorchError as error:
            assert not seen, f"it also warns: {seen[0].message}"
            kind = type(error)
            notes = ["", *getattr(error, "__notes__", [])]
            return kind.__name__, error.code, f"{kind.__module__}.{kind.__name__}: {error}" + "\n".join(notes)
    if not seen:
        return None
    assert len(seen) == 1, [str(warning.message) for warning in seen]
    name, text = seen[0].category.__name__, str(seen[0].message)
    return name, text[:5], f"{seen[0].filename}:{seen[0].lineno}: {name}: {text}"


def blocks(code: str) -> dict[str, list[str]]:
    """The code blocks of a page, by language."""
    found: dict[str, list[str]] = {"python": [], "text": []}
    for language, body in BLOCK.findall((PAGES / f"{code}.md").read_text(encoding="utf-8")):
        found[language].append(body)
    return found


def index() -> str:
    """The table of all pages, as its README.md has it."""
    rows = ["# Errors and warnings", "", "| code | what | class |", "|---|---|---|"]
    for code, title in codes().items():
        found = outcome(blocks(code)["python"][0])
        rows.append(f"| [{code}]({code}.md) | {title} | `{found[0] if found else '?'}` |")
    rows += ["", "Every class is also the built-in exception that Python users expect:", ""]
    rows += [f"- `{name}` is a `{base.__name__}`" for name, base in BUILTINS.items()]
    rows += [f"- `{name}` is a `UserWarning`" for name in ("TracingWarning", "ScheduleWarning")]
    return "\n".join(rows) + "\n"


# The pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", codes())
def test_page(code: str) -> None:
    text = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {code}: ")
    found = blocks(code)
    assert (len(found["python"]), len(found["text"])) == (2, 1)
    fails, repair = found["python"]

    happened = outcome(fails)
    assert happened is not None, "the first snippet runs"
    assert happened[1] == code
    assert happened[2].splitlines() == found["text"][0].splitlines()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(repair)
    assert "assert" in repair


def test_index() -> None:
    assert (PAGES / "README.md").read_text(encoding="utf-8") == index()


def test_pages_are_where_the_package_is() -> None:
    """Who has installed the package has the pages: they are package data, and a message says how to read them."""
    assert Path(inspect.getfile(mt)).parent == PAGES.parent
    with pytest.raises(MinitorchError, match=r"\n  more: minitorch explain MT201$"):
        mt.ones(2) + mt.ones(3)


def test_a_page_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    page = errors.explain("mt201")
    assert page == (PAGES / "MT201.md").read_text(encoding="utf-8") == page._repr_markdown_() == repr(page)
    assert main(["explain", "mt201"]) == 0 and capsys.readouterr().out == page
    assert main(["explain"]) == 0 and capsys.readouterr().out.splitlines() == [f"{c}  {t}" for c, t in codes().items()]
    assert main(["explain", "MT201", "MT202", "--json"]) == 0
    assert [row["code"] for row in json.loads(capsys.readouterr().out)] == ["MT201", "MT202"]
    with pytest.raises(ValueError, match="there is no error 'MT999'; the codes are MT101, "):
        errors.explain("MT999")
    assert main(["explain", "MT999"]) == 2 and "`minitorch explain` lists the codes" in capsys.readouterr().err


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell("import minitorch as mt")
shell.run_cell("mt.jit(lambda x: float(x.sum()) + 1)(mt.ones(2))")
"""


def test_a_notebook_shows_a_message_in_lines_that_it_need_not_break() -> None:
    pytest.importorskip("IPython")
    shown = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, cwd=ROOT).stdout
    with pytest.raises(errors.TracedValueError) as raised:
        mt.jit(lambda x: float(x.sum()) + 1)(mt.ones(2))
    whole = str(raised.value)
    assert max(map(len, whole.splitlines())) > errors.WIDTH
    message = shown[shown.rindex("TracedValueError: MT102") :]
    assert max(map(len, message.splitlines())) <= errors.WIDTH
    why = next(line for line in whole.splitlines() if line.startswith("  why: "))
    assert " ".join(why.split()) in " ".join(message.split())
    assert "mt.jit(lambda x: float(x.sum()) + 1)" in shown  # IPython's own traceback is around it


# The table and the source -----------------------------------------------------------------------------------


def codes_in_source() -> set[str]:
    """The codes that appear as strings in the packages' code; docstrings are longer strings."""
    found: set[str] = set()
    for path in (*(ROOT / "minitorch").rglob("*.py"), *(ROOT / "extras").rglob("*.py")):
        if path.name != "errors.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and re.fullmatch(r"MT\d{3}", text):
                    found.add(text)
    return found


def test_every_code_is_used_and_every_used_code_is_in_the_table() -> None:
    assert codes_in_source() | {"MT602"} == set(codes())  # ParseError gives MT602 by itself


def test_every_class_is_a_builtin_too() -> None:
    classes = {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, MinitorchError) and kind is not MinitorchError
    }
    assert classes.keys() == BUILTINS.keys()
    for name, kind in classes.items():
        assert issubclass(kind, BUILTINS[name])
    assert issubclass(TracingWarning, UserWarning)


# What can be done with a traced value -----------------------------------------------------------------------

X, N, V = "mt.tensor(0.5)", "mt.tensor(1)", "mt.ones(3)"


@pytest.mark.parametrize(
    "code, argument, line",
    [
        ("MT101", X, "if x > 0: return x"),
        ("MT101", X, "while x > 0: x = x - 1"),
        ("MT101", X, "assert x > 0"),
        ("MT101", X, "return 0 < x < 1"),
        ("MT101", X, "return x in [1, 2]"),
        ("MT101", V, "return 1 in x"),
        ("MT101", X, "return not x"),
        ("MT101", X, "return x and x"),
        ("MT101", X, "return max(x, 0.0)"),
        ("MT102", X, "return x.item()"),
        ("MT102", X, "return int(x)"),
        ("MT102", X, "return float(x)"),
        ("MT102", X, "return f'{x:.3f}'"),
        ("MT102", X, "return '%.3f' % x"),
        ("MT102", X, "import math; return math.sqrt(x)"),
        ("MT102", N, "return list(range(x))"),
        ("MT102", N, "return [1, 2, 3][x]"),
        ("MT102", N, "return [1, 2, 3][:x]"),
        ("MT102", N, "return mt.ones(3)[:x]"),
        ("MT102", N, "return mt.zeros(x)"),
        ("MT102", N, "return mt.ones(4).reshape(x, -1)"),
        ("MT102", V, "return x.tolist()"),
        ("MT102", V, "return x.numpy()"),
        ("MT102", V, "import numpy as np; return np.sin(x)"),
        ("MT103", V, "return x[x > 0]"),
        ("MT103", V, "return mt.nonzero(x)"),
        ("MT103", V, "return mt.unique(x)"),
        ("MT103", V, "return x.masked_select(x > 0)"),
        ("MT103", N, "return mt.arange(x)"),
        ("MT105", X, "print(x); return x"),
        ("MT105", V, "f'{x}'; return x"),
        ("MT105", X, "'%s' % x; return x"),
        (None, X, "global kept; kept = x * 2; return x"),
        ("MT109", V, "x.expand(2, 3).add_(1); return x"),
        ("MT110", V, "return mt.placeholder((3,))"),
        ("MT110", V, "mt.Graph().__enter__()"),
        (None, V, "return x if x is not None else 0"),
        (None, V, "return sum(row for row in x)"),
        (None, N, "return mt.ones(3)[x]"),
        (None, V, "return x if x.shape[0] > 2 and len(x) == 3 else -x"),
        (None, V, "x[x > 0] = 0; return x"),
    ],
)
def test_traced_value(code: str | None, argument: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each use gives its code, the user's line, and the argument's name; what is static works."""
    happened = outcome(f"import minitorch as mt\n@mt.jit\ndef f(x):\n    {line}\nf({argument})\n")
    capsys.readouterr()
    assert (happened and happened[1]) == code
    if code in ("MT101", "MT102", "MT103", "MT105"):
        assert "train.py:4" in happened[2] and ("`x`" in happened[2] or "range" in happened[2]), happened[2]


def test_iterating_over_a_number_is_a_type_error_in_every_mode() -> None:
    for call in ("f", "mt.jit(f)"):
        with pytest.raises(TypeError, match="0-dimensional"):
            run(f"import minitorch as mt\ndef f(x):\n    return [part for part in x]\n{call}(mt.tensor(1.0))")


LEAK = """import minitorch as mt
import warnings
kept = []
@mt.jit
def f(x):
    kept.append(x * 2)
    return x
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    f(mt.ones(3))
"""


@pytest.mark.parametrize(
    "use",
    [
        "kept[0] + 1",
        "kept[0].tolist()",
        "mt.jit(lambda x: x + kept[0])(mt.ones(3))",
        "mt.jit(lambda x: x + 1)(kept[0])",
        "with mt.Graph() as g: kept[0] + 1",
        "with mt.lazy(): kept[0] + 1",
    ],
)
def test_leaked_value(use: str) -> None:
    happened = outcome(LEAK + use)
    assert happened is not None and happened[1] == "MT104"
    assert "train.py:6" in happened[2]


@pytest.mark.parametrize(
    "holder, store",
    [
        ("a list, `kept`", "kept.append(x * 2)"),
        ("a set, `loose`", "loose.add(x * 2)"),
    ],
)
def test_stored_value_names_its_holder(holder: str, store: str) -> None:
    setup = "import minitorch as mt\nclass Box: pass\nbox, kept, loose = Box(), [], set()\n"
    happened = outcome(f"{setup}@mt.jit\ndef f(x):\n    {store}\n    return x\nf(mt.ones(3))\n")
    assert happened is not None and happened[1] == "MT105"
    assert f"outside of itself, in {holder}\n" in happened[2]
    assert happened[2].startswith("train.py:8: ")


@pytest.mark.parametrize(
    "setup, use, change",
    [
        ("c = 1.0", "x * c", "c = 2.0"),
        ("c = [1.0, 5.0]", "x * c[0]", "c[0] = 2.0"),
        ("c = {'a': 1.0}", "x * c['a']", "c['a'] = 2.0"),
        ("c = mt.ones(())", "x * c", "c = mt.full((), 2.0)"),
        ("c = mt.nn.LeakyReLU(1.0)", "-c(-x)", "c.negative_slope = 2.0"),
        (
            "class C(mt.nn.Module):\n    c = 1.0\n    def __init__(self): self.c = 1.0\n"
            "    def forward(self, x): return x * self.c\nc = C()",
            "c(x)",
            "c.c = 2.0",
        ),
    ],
)
def test_changed_constant(setup: str, use: str, change: str) -> None:
    program = f"import minitorch as mt\n{setup}\nf = mt.jit(lambda x: {use})\na = f(mt.ones(()))\n{change}\n"
    happened = outcome(program + "b = f(mt.ones(()))\nassert (a.item(), b.item()) == (1.0, 2.0)\n")
    assert happened is not None and happened[1] == "MT106" and "`c" in happened[2]


# Graphs name what a line alone does not say -----------------------------------------------------------------


def test_shape_error_names_the_lines_of_both_operands() -> None:
    body = "h = x * 2\n    k = w + 1\n    return h @ k"
    jit = f"import minitorch as mt\n@mt.jit\ndef f(x, w):\n    {body}\nf(mt.ones(2, 3), mt.ones(2, 3))\n"
    session = (
        "import minitorch as mt\nw = mt.ones(2, 3)\nwith mt.Graph() as g: x = mt.placeholder((2, 3), name='x')\n"
        "with g: h = x * 2\nwith g: k = w + 1\nwith g: h @ k\n"
    )
    for program in (jit, session):
        happened = outcome(program)
        assert happened is not None and happened[1] == "MT201"
        assert "train.py:6; f32[2,3] is made by mul at train.py:4 from `x`; " in happened[2]
        assert "made by add at train.py:5 from `w`" in happened[2]


NAN = "import minitorch as mt\ndef f(x):\n    y = x.sum()\n    return x / y\n"


@pytest.mark.parametrize(
    "use",
    [
        "with mt.debug.check_nan(): f(mt.zeros(3))",
        "with mt.debug.check_nan(): mt.jit(f)(mt.zeros(3))",
        "with mt.debug.check_nan(): mt.jit(lambda: f(mt.zeros(3)))()",
        "with mt.debug.check_nan(), mt.lazy(): y = f(mt.zeros(3))",
        "with mt.lazy(), mt.debug.check_nan(): y = f(mt.zeros(3)).tolist()",
        "with mt.Graph() as g: y = f(mt.placeholder((3,), name='x'))\n"
        "with mt.debug.check_nan(): mt.Session(g).run(y, {'x': [0.0, 0.0, 0.0]})",
    ],
)
def test_nan_is_found_in_every_mode(use: str) -> None:
    happened = outcome(NAN + use)
    assert happened is not None and happened[1] == "MT501"
    assert "div made 3 NaN" in happened[2] and "train.py:4" in happened[2]
    assert "train.py:3" not in happened[2]


# Sessions ---------------------------------------------------------------------------------------------------

SESSION = """import minitorch as mt
import numpy as np
with mt.Graph() as h:
    z = mt.placeholder((2,), name="z")
w = mt.ones(2)
with mt.Graph() as g:
    x = mt.placeholder((2,), name="x")
    i = mt.placeholder((2,), mt.int64, name="i")
    y = x * w
session = mt.Session(g)
"""


@pytest.mark.parametrize(
    "code, use",
    [
        ("MT301", "session.run(y, {z: [1.0, 2.0]})"),
        ("MT301", "session.run(y, {w: [1.0, 2.0]})"),
        ("MT301", "session.run(y, {x: y})"),
        ("MT302", "session.run(y, {x: [[1.0, 2.0]]})"),
        ("MT302", "session.run(y, {x: [[1.0, 2.0], [3.0]]})"),
        ("MT303", "session.run(i, {i: [1.5, 2.5]})"),
        ("MT303", "session.run(y, {x: None})"),
        ("MT303", "session.run(y, {x: ['a', 'b']})"),
        ("MT303", "session.run(i, {i: mt.ones(2)})"),
        ("MT304", "session.run([i, y], {x: [1.0, 2.0]})"),
        ("MT305", "session.run('y', {x: [1.0, 2.0]})"),
        ("MT305", "session.run(z)"),
        ("MT305", "mt.Session(mt.Graph.parse('graph(): return'))"),
        ("MT110", "mt.jit(lambda v: session.run(y, {x: v}))(mt.ones(2))"),
        ("MT110", "with g, mt.Graph(): pass"),
        ("MT110", "with g, mt.lazy(): pass"),
        (None, "session.run([w, y], {x: np.ones(2, 'float32'), i: [True, 2]})"),
        (None, "with mt.lazy(): assert session.run(y, {x: mt.ones(2) * 3}).tolist() == [3.0, 3.0]"),
    ],
)
def test_session(code: str | None, use: str) -> None:
    happened = outcome(SESSION + use)
    assert (happened and happened[1]) == code
