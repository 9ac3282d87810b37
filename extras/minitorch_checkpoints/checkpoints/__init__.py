"""Checkpoints: models, and all else that a training needs to go on, as files of named tensors.

    a module, an optimiser, nested dicts ──apart──► tensors by name, and the structure as JSON       structure
                                                        │
    tensors by name ──save──► shards of at most so many bytes, an index                              writing
                                    model-00001-of-00002.safetensors, model.safetensors.index.json
                                                        │
    Checkpoint: every header and the index checked, no element read yet                              reading
                                                        │
    load: what was saved, read into new tensors; or, into=, straight into those that are there       loading

A file is one of the safetensors format (`minitorch_checkpoints.safetensors`), and a folder is laid out as Hugging
Face's libraries lay it out, so their models are read, and they read ours.
"""

from __future__ import annotations

from .loading import load
from .reading import Checkpoint
from .writing import save

__all__ = ["Checkpoint", "load", "save"]
