"""Children of the fuzzer with something wrong in them: each answers as `fuzz.worker.answer` does."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from fuzz.judge import Finding
from fuzz.worker import Answer, Question, answer


def dies(question: Question) -> Answer:
    """The process ends over every eighth program, and then over all that have a statement left."""
    runs = not question.only_make and question.modes != ()
    if runs and (question.program.body if question.program else question.seed % 8 == 3):
        os.abort()
    return answer(replace(question, modes=()))


def hangs(question: Question) -> Answer:
    """There is no answer."""
    time.sleep(600)
    return answer(question)


def frequent_and_rare(question: Question) -> Answer:
    """Two faults: whatever adds is wrong, and so is what also has a sum."""
    return _faulty(question, frequent=True)


def rare(question: Question) -> Answer:
    """The second of them alone."""
    return _faulty(question, frequent=False)


def _faulty(question: Question, frequent: bool) -> Answer:
    said = answer(replace(question, modes=()))
    called = {callee.split(".")[-1].strip("{} ") for callee in said.program.callees}
    found = []
    if called & {"add", "+"}:
        found += [Finding("value", "jit", "rare")] if called & {"sum", "mean"} else []
        found += [Finding("value", "jit", "frequent")] if frequent else []
    return replace(said, findings=found)
