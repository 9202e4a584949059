"""The dialects of expressions, each by the DDL of the relations that a query reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.sql.expressions.dict_functions import USAGE
from dovetail.sql.functions.aggregate_calls import aggregate_names
from dovetail.sql.functions.risingwave.postgres_dialect import RisingWaveDialect
from dovetail.sql.functions.timeplus.dialect import TimeplusDialect
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.syntax.rules import Rules

TIMEPLUS = TimeplusDialect()
"""That of streams and dictionaries."""
RISINGWAVE = RisingWaveDialect()
"""That of tables and sources."""

DIALECTS: Mapping[Rules, Dialect] = {Rules.TIMEPLUS: TIMEPLUS, Rules.RISINGWAVE: RISINGWAVE}


def function_names(rules: Rules | None = None) -> Iterator[str]:
    """Aggregates, functions of dictionaries, and those of a dialect; of both where ``rules`` name none."""
    yield from aggregate_names()
    yield from USAGE
    for dialect in DIALECTS.values():
        if rules in (None, dialect.rules):
            yield from dialect.registry.functions
