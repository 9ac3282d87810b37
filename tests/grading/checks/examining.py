"""Examine a task as the grader does: every message goes through JSON."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from minitorch_grading.checks import Score, Task

Send = Callable[[Any], Any]  # from a message as JSON to the next one


def examined(task: Task, answering: Callable[[Send], Send], seeds: Iterable[int]) -> Score:
    """Return the score of a task all of whose messages go through JSON, as they do when a class is graded.

    `answering` makes what answers a case, and is given what sends a message in between (`Driver.answering`).
    """
    dialogue = task.examine(seeds)

    def send(message: Any) -> Any:
        sent = json.dumps(dialogue.send(json.loads(json.dumps(message, allow_nan=False))), allow_nan=False)
        assert sent != "null", "None is the end"
        return json.loads(sent)

    answer, given = answering(send), None
    while True:
        try:
            case = send(given)
        except StopIteration as end:
            score: Score = end.value
            return score
        given = answer(case)
