"""The tools of the notebooks: settings, a stopwatch, predictions, and showing errors. The engine does without them."""

from minitorch_inspect.plots.plot import duration

from .aligning import Aligned, aligned, operations
from .animations.simulating import Rounds, rounds
from .animations.sweeping import Sweep, sweep
from .animations.traversing import Traversal, traversal
from .blanking import Blank, blank
from .catching import caught
from .conditions import Settings, forget_compiled, settings
from .debugging import typed
from .golfing import Golf, golf
from .libraries.devices import with_devices
from .libraries.inductor import inductor, optimised
from .libraries.pytorch import with_onnxruntime, with_torch
from .libraries.records import record
from .libraries.stacks import Stacks, stacks, stacks_here
from .panels.panel import Panel, panel
from .predicting import Prediction, predict, predictions
from .process import peak_memory
from .stopwatch import Comparison, Laps, Times, compare, first_call, laps, measure

__all__ = [
    "Aligned",
    "Blank",
    "Comparison",
    "Golf",
    "Laps",
    "Panel",
    "Prediction",
    "Rounds",
    "Settings",
    "Stacks",
    "Sweep",
    "Times",
    "Traversal",
    "aligned",
    "blank",
    "caught",
    "compare",
    "duration",
    "first_call",
    "forget_compiled",
    "golf",
    "inductor",
    "laps",
    "measure",
    "operations",
    "optimised",
    "panel",
    "peak_memory",
    "predict",
    "predictions",
    "record",
    "rounds",
    "settings",
    "stacks",
    "stacks_here",
    "sweep",
    "traversal",
    "typed",
    "with_devices",
    "with_onnxruntime",
    "with_torch",
]
