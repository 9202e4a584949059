"""One catalog to a place of checkpoints.

    <place>/catalogs/<identity>    the catalog whose queries have their checkpoints here

Two catalogs number their queries alike, so the checkpoints of one would be taken for those of the other, by runners
that know nothing of each other. A claim is put before others are looked for: of two that come at once each sees the
other, and neither goes on. So a store needs nothing but to list what was put.
"""

from __future__ import annotations

from dovetail.changelog.errors import StackError
from dovetail.runtime.storage.storage import Storage

_CLAIMS = "catalogs"


def claim(checkpoints: Storage, catalog: str) -> None:
    """Take the place for a catalog, which may have it already. Raises StackError where another one has it."""
    claims = checkpoints.inside(_CLAIMS)
    before = claims.names()
    if catalog in before:
        return
    _refuse(checkpoints, before)
    claims.put(catalog, b"")
    others = [name for name in claims.names() if name != catalog]
    if others:
        claims.remove(catalog)
        _refuse(checkpoints, others)


def _refuse(checkpoints: Storage, others: list[str]) -> None:
    if others:
        raise StackError(
            f"the checkpoints belong to another catalog, {others[0]}",
            where=checkpoints.location,
            fix="give this one a place of its own (DOVETAIL_CHECKPOINT_DIR), or start the runner with that one's"
            f" DOVETAIL_CATALOG_URL; where that catalog is gone for good, remove {_CLAIMS}/{others[0]} there",
        )
