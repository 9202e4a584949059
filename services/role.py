"""Roles: what a user may do."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """Each may do what the ones before it may.

    reader   looks: SELECT, SHOW, DESCRIBE, EXPLAIN, PRINT, WHY, WAIT, dry runs, changes
    writer   changes rows: INSERT, UPDATE, DELETE, REPLAY, SYSTEM RELOAD
    admin    changes what there is, and who may
    """

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    def includes(self, needed: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(needed)
