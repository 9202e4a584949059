"""The time, in a query over ``table(x)``: that at which it is asked. A streaming query has none."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from sql.expressions.engine import parsed
from sql.functions.translate import Special, Translator
from sql.functions.typed import Typed

_NOW = pa.timestamp("us", "UTC")
_CLOCKS: Mapping[str, tuple[str, pa.DataType]] = {
    "now": ("date_trunc('second', now())", _NOW),
    "now64": ("now()", _NOW),
    "current_timestamp": ("now()", _NOW),
    "localtimestamp": ("timezone('UTC', now())", pa.timestamp("us")),
    "proctime": ("now()", _NOW),
    "today": ("CAST(timezone('UTC', now()) AS DATE)", pa.date32()),
    "current_date": ("CAST(timezone('UTC', now()) AS DATE)", pa.date32()),
    "yesterday": ("CAST(timezone('UTC', now()) AS DATE) - 1", pa.date32()),
}


def clocks() -> dict[str, Special]:
    """The calls that tell the time, by name."""
    return {name: _reading(tree, kind) for name, (tree, kind) in _CLOCKS.items()}


def _reading(sql: str, kind: pa.DataType) -> Special:
    def read(translate: Translator, call: exp.Expr) -> Typed:
        return translate.environment.known(parsed(sql), kind)

    return read
