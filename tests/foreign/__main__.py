"""The models of `models.PACKAGES` beside ONNX Runtime, in one thread each, as a table.

python -m tests.foreign                what each computes, how exactly, and how fast
python -m tests.foreign silero ocr     those whose names have one of these words
python -m tests.foreign --save         writes the table of docs/onnx.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import minitorch as mt
from benchmarks.report import saved
from benchmarks.turns import medians

from .models import Model, models

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
SECONDS = 1.0  # of measurements for each model


def row(model: Model) -> str:
    """A line of the table: opset, nodes, the error, and the times of a call."""
    loaded, arguments, session = mt.export.load_onnx(model.path).eval(), model.arguments(), model.session()
    with mt.no_grad():
        frozen = mt.freeze(loaded, *arguments)
        error = model.error(frozen(*arguments), session())
        times = medians({"ours": lambda: frozen(*arguments), "theirs": session}, SECONDS)
    opset = next(each.version for each in model.proto.opset_import if each.domain in ("", "ai.onnx"))
    ours, theirs = times["ours"], times["theirs"]
    package, _, name = model.name.partition(": ")
    nodes = len(loaded.program.steps)
    return (
        f"| {package} | {name} | {opset} | {nodes} | {error:.0e} | {1e3 * ours:.2f} | {1e3 * theirs:.2f} "
        f"| {ours / theirs:.2g} |"
    )


def main() -> int:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="only models whose names have one of these")
    parser.add_argument("--save", action="store_true", help="write the table of docs/onnx.md")
    options = parser.parse_args()
    mt.set_num_threads(1)
    head = "| package | model | opset | nodes | error | frozen, ms | ONNX Runtime, ms | ratio |"
    lines = [head, "|---|---|--:|--:|--:|--:|--:|--:|"]
    print("\n".join(lines))
    for model in models():
        if model.package.name == "onnx":  # its weights are numbers that repeat, which says nothing about times
            continue
        if not options.words or any(word in model.name for word in options.words):
            lines.append(row(model))
            print(lines[-1], flush=True)
    if options.save:
        PAGE.write_text(saved(PAGE.read_text(encoding="utf-8"), "\n".join(lines)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
