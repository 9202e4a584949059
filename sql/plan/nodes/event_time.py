"""The event time that a column follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import pyarrow as pa

MICROS = 1_000
"""Microseconds in the unit of watermarks."""


@dataclass(frozen=True)
class EventTime(ABC):
    """A column that follows ``column`` of where the time comes from.

    shift  it is not less than its origin and this, in microseconds, or the number itself
    """

    column: str
    shift: Fraction

    @property
    @abstractmethod
    def type(self) -> pa.DataType:
        """That of the origin."""

    @property
    def is_clock(self) -> bool:
        """Whether a watermark can stand over it: a time, a day or a whole number."""
        return self.whole or pa.types.is_timestamp(self.type) or pa.types.is_date32(self.type)

    @property
    def whole(self) -> bool:
        """Whether it is a whole number rather than a time."""
        return bool(pa.types.is_integer(self.type))

    @property
    def shift_units(self) -> int:
        """``shift`` in the unit of watermarks: ms, or the number itself."""
        return int(self.shift // (1 if self.whole else MICROS))

    def shifted(self, by: Fraction) -> Self:
        return replace(self, shift=self.shift + by)
