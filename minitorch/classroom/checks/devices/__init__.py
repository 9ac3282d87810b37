"""Exercise 16, more than one device: collectives from sends, the messages of a product, batches in pieces."""

from __future__ import annotations

from .batches import train
from .products import messages
from .sends import all_gather, all_reduce

TASKS = (all_gather, train, messages, all_reduce)
