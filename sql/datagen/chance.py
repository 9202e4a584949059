"""Random numbers that are a function of a row's number: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom
number generators, 2014), which is of good quality for consecutive numbers, over columns of them.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
_STEP, _FIRST, _SECOND = (np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_PRINTABLE = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)


@dataclass(frozen=True)
class Chance:
    """A sequence of random numbers, another for each ``seed``."""

    seed: int

    @staticmethod
    def of(name: str, seed: int = 0) -> Chance:
        """That of a column: columns of one seed are not alike."""
        return Chance((zlib.crc32(name.encode()) << 32 | zlib.crc32(str(seed).encode())) & (2**64 - 1))

    def bits(self, numbers: Numbers) -> Bits:
        """64 random bits for each of ``numbers``."""
        with np.errstate(over="ignore"):
            mixed = (numbers.astype(np.uint64) + np.uint64(1)) * _STEP + np.uint64(self.seed)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
            mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
            return mixed ^ (mixed >> np.uint64(31))

    def fractions(self, numbers: Numbers) -> npt.NDArray[np.float64]:
        """From 0 to below 1."""
        return np.ldexp((self.bits(numbers) >> np.uint64(11)).astype(np.float64), -53)

    def integers(self, numbers: Numbers, least: int, most: int) -> Numbers:
        """Both inclusive, of 64 bits."""
        span = most - least + 1
        drawn = self.bits(numbers) if span > 2**64 - 1 else self.bits(numbers) % np.uint64(span)
        return (drawn + np.uint64(least % 2**64)).astype(np.int64)

    def letters(self, numbers: Numbers, length: int) -> npt.NDArray[np.bytes_]:
        """Texts of so many letters and digits, at least one."""
        each = self.bits((numbers[:, None] * length + np.arange(length)).ravel()) % np.uint64(len(_PRINTABLE))
        return _PRINTABLE[each.astype(np.intp)].view(f"S{length}")
