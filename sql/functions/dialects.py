"""The dialects of expressions, each by the DDL of the relations that a query reads."""

from __future__ import annotations

from collections.abc import Mapping

from sql.functions.timeplus.dialect import TimeplusDialect
from sql.functions.translate import Dialect
from sql.syntax.types import Rules

TIMEPLUS = TimeplusDialect()
"""That of streams and dictionaries."""

DIALECTS: Mapping[Rules, Dialect] = {Rules.TIMEPLUS: TIMEPLUS, Rules.RISINGWAVE: TIMEPLUS}
