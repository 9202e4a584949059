"""The dialects of expressions, each by the DDL of the relations that a query reads."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.sql.functions.risingwave.postgres_dialect import RisingWaveDialect
from dovetail.sql.functions.timeplus.dialect import TimeplusDialect
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.syntax.rules import Rules

TIMEPLUS = TimeplusDialect()
"""That of streams and dictionaries."""
RISINGWAVE = RisingWaveDialect()
"""That of tables and sources."""

DIALECTS: Mapping[Rules, Dialect] = {Rules.TIMEPLUS: TIMEPLUS, Rules.RISINGWAVE: RISINGWAVE}
