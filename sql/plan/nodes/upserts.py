"""Upserts: records each of which takes the place of the one before it of its primary key."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.changelog.schema import Kind, StreamSchema

UPSERTS = (Kind.UPSERT, Kind.CHANGELOG_KV)


@dataclass(frozen=True)
class Upserts:
    """``key``: the columns of the primary key; ``version``: that which tells which record of a key stands, '': the last
    one does.
    """

    key: tuple[str, ...]
    version: str = ""

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({*self.key, *([self.version] if self.version else [])})


def ruling(stream: StreamSchema) -> tuple[str, ...]:
    """The columns by which upserts become changes: the primary key, and the version if one decides."""
    return stream.primary_key + ((stream.version,) if stream.version else ())
