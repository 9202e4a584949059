"""What a statement gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from dovetail.services.session import Done, Rows, Text

_NULLABLE = {
    pa.bool_(): "boolean",
    **{getattr(pa, f"{sign}int{bits}")(): f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Types of pandas that know NULL."""


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query or a listing; of any other statement none, and ``text`` says what it has done.

    >>> answer = db.sql("SELECT id FROM table(orders)")
    >>> answer.pandas()
    >>> [row["id"] for row in answer]
    """

    text: str
    table: pa.Table

    @staticmethod
    def of(result: Done | Text | Rows) -> QueryResult:
        table = getattr(result, "table", pa.table({}))
        return QueryResult(result.note if hasattr(result, "note") else result.text, table)

    def arrow(self) -> pa.Table:
        return self.table

    def pandas(self) -> pd.DataFrame:
        """Integers and truth values in pandas' types that know NULL (``Int64``, ``boolean``), whatever the rows are:
        with a NULL they would become floats, which round large numbers, and objects.
        """
        return self.table.to_pandas(types_mapper=_nullable)

    def polars(self) -> pl.DataFrame:
        import polars as pl  # noqa: PLC0415 - whoever wants no frame of it need not wait for it

        return pl.DataFrame(self.table)

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each row."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __str__(self) -> str:
        return str(self.polars()) if self.table.num_columns else self.text

    def _repr_html_(self) -> str | None:
        return self.polars()._repr_html_() if self.table.num_columns else None


def _nullable(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    import pandas as pd  # noqa: PLC0415 - as above

    name = _NULLABLE.get(kind)
    return None if name is None else pd.api.types.pandas_dtype(name)
