"""Types mean something: the stubs are what the package has, and a misspelt name is an error for mypy and in an editor.

mypy's ``stubtest`` compares names, kinds of parameters and defaults with the package, not the types of parameters and
results. These are the annotations in the source, against which mypy has checked the source.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jedi
import pytest

import minitorch as mt
from tools import stubs

ROOT = Path(__file__).parents[2]

RIGHT = """\
import minitorch as mt
import minitorch.nn.functional as F

x = mt.randn(2, 3, requires_grad=True)
y = (2 * x + 1).relu().transpose(0, 1) @ x
y += mt.softmax(y, dim=1).sum(0, keepdim=True)
y.clamp_(min=0).mean().backward()
p: mt.Tensor = F.gelu(mt.nn.Linear(3, 4)(x)) if mt.float32 is x.dtype else -x.T.data
values, indices = x.max(dim=1)

@mt.jit
def f(x: mt.Tensor, scale: float) -> mt.Tensor:
    return x * scale

class Net(mt.nn.Module):
    @mt.jit(backend="interpret")
    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return f(x, scale=2.0).relu()

print(f.graph(x), mt.jit(Net()).eval()(x))
"""
WRONG = {
    "x.reluu()": '"Tensor" has no attribute "reluu"  [attr-defined]',
    "f(x, 2.0).reluu()": '"Tensor" has no attribute "reluu"  [attr-defined]',
    "f.grpah(x)": '"Jitted[[Tensor, float], Tensor]" has no attribute "grpah"  [attr-defined]',
    "f(x, sclae=2.0)": 'Unexpected keyword argument "sclae" for "__call__" of "Calling"; did you mean "scale"?  '
    "[call-arg]",
    "mt.sofmax(x, dim=1)": 'Module has no attribute "sofmax"; maybe "softmax"?  [attr-defined]',
    "mt.nn.Relu()": 'Module has no attribute "Relu"  [attr-defined]',
    "F.gleu(x)": 'Module has no attribute "gleu"; maybe "glu"?  [attr-defined]',
    "x.sum(axes=0)": 'Unexpected keyword argument "axes" for "sum" of "TensorMethods"  [call-arg]',
    "x.reshape(2, 3).flatten('C')": 'Argument 1 to "flatten" of "TensorMethods" has incompatible type "str"; '
    'expected "int"  [arg-type]',
    "x + [1, 2]": 'Unsupported operand types for + ("Tensor" and "list[int]")  [operator]',
    "x.shape = (3, 2)": 'Property "shape" defined in "Tensor" is read-only  [misc]',
    "mt.export.onxx": 'Module has no attribute "onxx"  [attr-defined]',
    "mt.inspect.shwo(x)": 'Module has no attribute "shwo"  [attr-defined]',
    "mt.passes.FREEZNG": 'Module has no attribute "FREEZNG"; maybe "FREEZING"?  [attr-defined]',
    "mt.sin(x, x)": 'Too many arguments for "sin"  [call-arg]',
}


# `stubtest` of the named modules, without those within them and those that they import.
COMPARING = """\
import sys
from mypy import stubtest

build = stubtest.build_stubs
stubtest.build_stubs = lambda modules, options, find_submodules=False: build(modules, options)
sys.exit(stubtest.main())
"""


def run(*arguments: str) -> str:
    """What Python prints, run in the project's folder; on stderr mypy says what it cannot compare."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("path", stubs.STUBS, ids=lambda path: path.name)
def test_stubs_are_what_make_stubs_writes(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == stubs.STUBS[path](), "run `make stubs`"


def test_stubs_agree_with_the_package(tmp_path: Path) -> None:
    """mypy's comparison with what is there at run time, of the two modules that are put together there."""
    (options := tmp_path / "mypy.ini").write_text("[mypy]\nfollow_imports = skip\nignore_missing_imports = true\n")
    modules = ("minitorch", "minitorch.methods")
    found = run("-c", COMPARING, *modules, "--concise", "--mypy-config-file", str(options)).splitlines()
    assert any(line.startswith("minitorch.") for line in found), found  # it has compared: some decorators hide
    own = [line for line in found if re.match(r"minitorch(\.methods\b|\.\w+ | )|error", line)]
    # The first parameter, which no caller sees, is `self` in the stub and often `input` in the package.
    assert [line for line in own if 'stub parameter "self" differs' not in line] == []


def test_misspelt_names_are_errors(tmp_path: Path) -> None:
    """mypy finds each wrong line wrong, and nothing else."""
    program = tmp_path / "program.py"
    program.write_text(RIGHT + "\n".join(WRONG))
    found = re.findall(r"program\.py:(\d+): error: (.*)", run("-m", "mypy", "--no-error-summary", str(program)))
    first = RIGHT.count("\n") + 1
    assert found == [(str(number), error) for number, error in enumerate(WRONG.values(), first)]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("x.rel", {"relu", "relu_"}),
        ("mt.softm", {"softmax"}),
        ("(x * 2).relu().trans", {"transpose", "transpose_"}),
        ("mt.zeros(2).grad_", {"grad_fn"}),
        ("x.T.flat", {"flatten"}),
    ],
)
def test_editors_and_notebooks_complete(code: str, names: set[str]) -> None:
    """jedi completes in notebooks, from what there is, and in editors, from files alone; both with the docstring."""
    before = "import minitorch as mt\nx = mt.ones(2, 2)\n"
    project = jedi.Project(ROOT)
    for found in (
        jedi.Script(before + code, path=ROOT / "unsaved.py", project=project).complete(),
        jedi.Interpreter(code, [{"mt": mt, "x": mt.ones(2, 2)}], project=project).complete(),
    ):
        assert {each.name for each in found} == names
        assert all(each.docstring(raw=True) for each in found)


def test_signatures_are_shown() -> None:
    """Those of methods in place too, which are made of the functions."""
    (signature,) = jedi.Interpreter("x.add_(", [{"x": mt.ones(2)}]).get_signatures()
    assert [each.name for each in signature.params] == ["other", "alpha"]
