"""Removal of sharding on a single device: a sharded value is the value."""

from __future__ import annotations

from ..graph.patterns import op, wildcard
from ..graph.rewrite import Rule, Rules
from .pipeline import table_pass

LAWS = Rules(Rule(op.shard(wildcard("x")), wildcard("x")))

UNSHARDED = table_pass("unsharded", LAWS, "Remove the division of values among devices: here is one.")
