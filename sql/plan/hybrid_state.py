"""A state of which a part is in memory at a time."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.joins.dataflow.state_memory import StateMemory


@dataclass(frozen=True)
class HybridState:
    """memory  how much of it may be in memory at once
    joins   that of joins, and of what else keeps rows
    groups  that of aggregates and sessions
    """

    memory: StateMemory
    joins: bool
    groups: bool

    @property
    def of_joins(self) -> StateMemory | None:
        """None: all of it is in memory."""
        return self.memory if self.joins else None

    @property
    def of_groups(self) -> StateMemory | None:
        return self.memory if self.groups else None

    @property
    def readable(self) -> str:
        """``hybrid joins and groups, of 1000 bytes and 10 keys in memory``"""
        whose = " and ".join([*(["joins"] if self.joins else []), *(["groups"] if self.groups else [])])
        keys = "" if self.memory.keys is None else f" and {self.memory.keys} keys"
        return f"hybrid {whose}, of {self.memory.bytes} bytes{keys} in memory"
