"""What a declaration of another system is in Dovetail, with its own names and columns: the fix of a refusal.

Each form is a statement that runs as it stands. What is to be known besides stands behind it as a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.dialect import DovetailTokenizer
from dovetail.sql.syntax.grammar.columns import Elements
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import display


def written(name: str) -> str:
    """A name as SQL has it: in quotes where it is no plain word, or one of SQL's."""
    plain = re.fullmatch(r"[A-Za-z_]\w*", name) is not None and name.upper() not in DovetailTokenizer.KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def noted(form: str, note: str = "") -> str:
    return f"{form};  -- {note}" if note else form


@dataclass(frozen=True)
class Declaration:
    """A topic with its columns, as another system declares it; ``brokers`` is '' where it names none."""

    name: str
    found: Elements
    topic: str
    brokers: str = ""

    def keyed(self) -> str:
        """A table whose records replace each other by the primary key."""
        key = ", ".join(map(written, self.found.primary_key))
        parts = [*self._columns(Rules.RISINGWAVE), *self._watermark(), f"PRIMARY KEY ({key})"]
        return f"CREATE TABLE {written(self.name)} ({', '.join(parts)}) WITH ({self._with()})"

    def appended(self) -> str:
        """A table each of whose records is a row, and which a query reads from the first one on."""
        parts = [*self._columns(Rules.RISINGWAVE), *self._watermark()]
        return f"CREATE TABLE {written(self.name)} ({', '.join(parts)}) APPEND ONLY WITH ({self._with()})"

    def stream(self) -> str:
        """A stream that a query reads from now on."""
        settings = ["type = 'kafka'", *([f"brokers = {text(self.brokers)}"] if self.brokers else [])]
        settings.append(f"topic = {text(self.topic)}")
        watermark = self.found.watermark
        if watermark is not None:
            settings.append(f"event_time_column = {text(watermark.column)}")
        columns = ", ".join(self._columns(Rules.TIMEPLUS))
        return f"CREATE EXTERNAL STREAM {written(self.name)} ({columns}) SETTINGS {', '.join(settings)}"

    def _columns(self, rules: Rules) -> list[str]:
        return [
            f"{written(column.name)} {display(column.type, rules)}{'' if column.nullable else ' NOT NULL'}"
            for column in self.found.columns
        ]

    def _watermark(self) -> Iterable[str]:
        watermark = self.found.watermark
        if watermark is None:
            return
        column, delay = written(watermark.column), watermark.delay_ms
        length = f"{delay // 1_000}' SECOND" if delay % 1_000 == 0 else f"{delay}' MILLISECOND"
        yield f"WATERMARK FOR {column} AS {column}" + (f" - INTERVAL '{length}" if delay else "")

    def _with(self) -> str:
        brokers = [f"properties.bootstrap.server = {text(self.brokers)}"] if self.brokers else []
        return ", ".join(["connector = 'kafka'", f"topic = {text(self.topic)}", *brokers])


def refuse(cursor: Cursor, what: str, form: str, offset: int) -> NoReturn:
    cursor.fail(what, fix=form, kind=Unsupported, offset=offset)
