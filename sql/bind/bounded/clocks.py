"""The time, in a query over ``table(x)``: that at which it is asked. A streaming query has none."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.engine import parsed
from dovetail.sql.functions.translate import Special, Translator
from dovetail.sql.functions.typed import Typed
from dovetail.sql.syntax.rules import Rules

_NOW = pa.timestamp("us", "UTC")
_THREE: exp.Expr = exp.Literal.number(3)
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
    return {name: _reading(name, tree, kind) for name, (tree, kind) in _CLOCKS.items()}


def _as_fine(name: str, now: Typed, translate: Translator, call: exp.Expr) -> Typed:
    """In Timeplus ``now()`` has no digits of seconds, ``now64()`` three, ``now64(6)`` six."""
    if name == "now":
        return translate.call("to_datetime", [now])
    given = (one for one in call.expressions if isinstance(one, exp.Literal) and not one.is_string)
    return translate.call("to_datetime64", [now, translate(next(given, _THREE))])


def _reading(name: str, sql: str, kind: pa.DataType) -> Special:
    def read(translate: Translator, call: exp.Expr) -> Typed:
        if call.expressions and name != "now64":
            raise SqlError(f"{name} takes no arguments", where=translate.environment.place, fix=f"write {name}()")
        read = translate.environment.known(parsed(sql), kind)
        own = name in ("now", "now64") and translate.dialect.rules is Rules.TIMEPLUS
        return _as_fine(name, read, translate, call) if own else read

    return read
