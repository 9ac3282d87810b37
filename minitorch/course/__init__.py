"""The tools of the notebooks: settings, a stopwatch, predictions, and showing errors. The engine does without them."""

from ..inspect.plots.plot import duration
from .catching import caught
from .conditions import Settings, forget_compiled, settings
from .debugging import typed
from .predicting import Prediction, predict, predictions
from .stopwatch import Comparison, Laps, Times, compare, first_call, laps, measure

__all__ = [
    "Comparison",
    "Laps",
    "Prediction",
    "Settings",
    "Times",
    "caught",
    "compare",
    "duration",
    "first_call",
    "forget_compiled",
    "laps",
    "measure",
    "predict",
    "predictions",
    "settings",
    "typed",
]
