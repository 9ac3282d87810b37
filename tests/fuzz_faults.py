"""Children of the fuzzer with something wrong in them: each answers as `fuzz.worker.answer` does."""

from __future__ import annotations

import os
import time
from dataclasses import replace

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
