"""The dialects of expressions, each by the DDL of the relations that a query reads."""

from __future__ import annotations

from sql.functions.timeplus.dialect import TimeplusDialect

TIMEPLUS = TimeplusDialect()
"""That of streams and dictionaries."""
