"""How much of an answer is given: rows and bytes, and what is said of the rest."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass
class Allowance:
    """What is left of an answer's rows and bytes."""

    rows: int
    bytes: int

    def share(self, rows: pa.Table) -> pa.Table:
        """So many of ``rows`` as there is room for."""
        return rows.slice(0, self.rows)

    def take(self, rows: int, size: int) -> None:
        self.rows -= rows
        self.bytes -= size

    @property
    def spent(self) -> bool:
        return self.rows <= 0 or self.bytes <= 0

    @property
    def why(self) -> str:
        """What cut the answer short; '' where nothing has."""
        if self.bytes <= 0:
            return "the answer is as large as one gets: DOVETAIL_SERVE_ANSWER_BYTES"
        return "there are more rows than an answer has: DOVETAIL_SERVE_ROWS" if self.rows < 0 else ""
