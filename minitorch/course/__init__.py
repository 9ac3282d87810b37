"""The tools of the notebooks: settings, a stopwatch, predictions, and showing errors. The engine does without them."""

from .catching import caught
from .conditions import Settings, settings
from .debugging import typed
from .predicting import Prediction, predict, predictions
from .stopwatch import Comparison, Times, compare, first_call, measure

__all__ = [
    "Comparison",
    "Prediction",
    "Settings",
    "Times",
    "caught",
    "compare",
    "first_call",
    "measure",
    "predict",
    "predictions",
    "settings",
    "typed",
]
