"""The rows that one side of a join holds, as its matching asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.joins.state.arrangement import Matches


class ArrangementView(Protocol):
    """What matching asks of an arrangement; ``keys``, where they are left out, are those of the rows held."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def null_safe(self) -> tuple[bool, ...]: ...

    @property
    def size(self) -> int: ...

    def strict(self) -> list[str]: ...

    def counts(self, rows: pa.Table, keys: Sequence[str] | None = None) -> npt.NDArray[np.int64]: ...

    def probe(self, rows: pa.Table, keys: Sequence[str] | None = None) -> Matches: ...

    def probed(self, rows: pa.Table, keys: Sequence[str] | None = None) -> Iterator[Matches]: ...
