"""What a dictionary is: its columns, where its rows come from, how they are kept. ``dictionaries.check`` checks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.changelog.schema import Column
from dovetail.dictionaries.definition.options import Parameter, Parameters

__all__ = ["Definition", "LayoutSpec", "Parameter", "Parameters", "SourceSpec"]


@dataclass(frozen=True)
class SourceSpec:
    """SOURCE(KIND(name value ..)): ``kind`` and names in lower case. ``parameters`` may hold a password."""

    kind: str
    parameters: Parameters = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class LayoutSpec:
    """LAYOUT(KIND(name value ..)): ``kind`` in lower case, without the prefix COMPLEX_KEY_."""

    kind: str
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True)
class Definition:
    """A dictionary as declared.

    columns      all of them, in the order of a row
    key          names of the primary key, in order; none: a table that is asked by any column, several rows per key
    lifetime_s   (least, greatest) between reloads of loaded layouts; (0, 0): never
    settings     SETTINGS(..): negative_ttl, on_error, max_stale, timeout_ms, ..
    expressions  SQL of the source that computes a column, by the column's name
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    source: SourceSpec
    layout: LayoutSpec
    lifetime_s: tuple[int, int] = (0, 0)
    settings: Parameters = field(default_factory=dict)
    expressions: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)
