"""What is asked of the groups: which aggregates, over which columns, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from dovetail.changelog.rows import Positions


class Fold(StrEnum):
    """What an aggregate makes of the values of a group; NULLs are left out, of no values it makes NULL (COUNT: 0)."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class Aggregation:
    """A column of the groups: ``fold`` over the values of the column ``argument``.

    argument   empty: COUNT counts the rows. For SUM and AVG an integer of 64 bits, a decimal or a float64
    type       of the result: int64 for COUNT; int64, uint64 or decimal(38, 0) for SUM of integers, decimal(38, s) for
               SUM of decimals, float64 for AVG and for SUM of floats; that of the argument for MIN and MAX
    distinct   equal values count once
    """

    name: str
    fold: Fold
    argument: str
    type: pa.DataType
    distinct: bool = False


class GroupFunction(Protocol):
    """Aggregates of whole groups: those that no fold makes out of what they were and of a change. Pickles.

    arguments  the columns that it reads
    schema     the columns that it makes, one value for each group
    """

    @property
    def arguments(self) -> tuple[str, ...]: ...

    @property
    def schema(self) -> pa.Schema: ...

    def __call__(self, rows: pa.Table, group: Positions, groups: int) -> pa.Table:
        """The values of the groups 0 to ``groups``, the i-th of ``rows`` being one of the group ``group[i]``; NULL for
        one without rows. They depend on the rows alone, not on their order.
        """
        ...


@dataclass(frozen=True)
class Closing:
    """When a group can gain no more rows: its ``column`` is behind the watermark of the input + ``shift``.

    shift    rows that are yet to come have ``column >= watermark + shift`` (ms, or the number itself)
    through  they have ``column > watermark + shift``: groups at the bound itself can gain no more rows either
    """

    column: str
    shift: int
    through: bool = False
