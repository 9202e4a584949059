"""Results of statements as tools give them: text, or rows as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.formats import json_text
from dovetail.changelog.wording import counted
from dovetail.services.session.result import Done, Live, Result, Rows, Text


@dataclass
class ToolAnswer:
    """What a tool gives back.

    text    lines to be read as they are, '' where there are only rows
    rows    the first rows, a JSON object each; decimals as numbers, times as text in UTC
    total   how many rows there are
    notes   what else is to be known: records left out, rows not shown
    """

    text: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    total: int = 0
    notes: list[str] = field(default_factory=list)


def answer_of(result: Result, limit: int) -> ToolAnswer:
    """Raises Unsupported for rows that have no end."""
    match result:
        case Done() | Text():
            return ToolAnswer(result.text)
        case Rows():
            return of_rows(result.table, limit, result.note)
        case Live():
            raise Unsupported(
                "this statement goes on with its streams, and a tool gives one answer",
                fix="ask for the rows as of now: SELECT .. FROM table(x)",
            )


def of_rows(table: pa.Table, limit: int, note: str = "") -> ToolAnswer:
    rows = [orjson.loads(row) for row in json_text.objects(table.slice(0, limit))]
    cut = [f"{len(rows):,} of {counted(table.num_rows, 'row')} are shown"] if len(rows) < table.num_rows else []
    return ToolAnswer(rows=rows, total=table.num_rows, notes=[*filter(None, [note]), *cut])
