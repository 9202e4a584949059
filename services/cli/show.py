"""Results on the screen: rich tables on a terminal, plain aligned text elsewhere, JSON lines on demand."""

from __future__ import annotations

import errno
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from dovetail.changelog.formats import json_text
from dovetail.changelog.schema import WIRE_DELTA
from dovetail.changelog.wording import counted
from dovetail.services.cli.cells import NULL, beginning, texts, to_the_right
from dovetail.services.cli.row_format import Format, Mode
from dovetail.services.stack import ComponentStatus

_SHOWN_ON_TERMINAL = 1_000
_PROGRESS_EVERY_S = 2.0
_COMPONENTS = pa.schema(
    [
        ("component", pa.string()),
        ("state", pa.string()),
        ("address", pa.string()),
        ("pid", pa.int64()),
        ("log", pa.string()),
    ]
)
_STYLES = {"1": "green", "-1": "red"}
_SIGNS = {"1": "+ ", "-1": "- "}


class Screen:
    """Where results go. Rows go to ``output``; progress and notes to standard error."""

    def __init__(self, form: Format = Format.TABLE, output: TextIO | None = None, mode: Mode = Mode.CHANGELOG) -> None:
        self.form = form
        self.mode = mode
        self.output = output or sys.stdout
        self.console = Console(file=self.output, highlight=False, soft_wrap=not self.output.isatty())
        self.notes = Console(stderr=True, highlight=False, soft_wrap=True)

    @property
    def is_terminal(self) -> bool:
        return self.output.isatty() and self.form is Format.TABLE

    def expect_reader(self) -> None:
        """Raises BrokenPipeError where who has read the output is gone: a pipe says so at the next write only, and rows
        may not come for long.
        """
        try:
            number = self.output.fileno()
        except OSError:
            return
        poll = select.poll()
        poll.register(number, 0)
        if any(event & select.POLLERR for _, event in poll.poll(0)):
            raise BrokenPipeError(errno.EPIPE, "the output is read no longer")

    def line(self, text: str, style: str = "") -> None:
        if self.is_terminal:
            self.console.print(Text(text, style=style))
        else:
            self.output.write(text + "\n")

    def note(self, text: str, style: str = "dim") -> None:
        """What is no part of the result."""
        self.notes.print(Text(text, style=style))

    def title(self, text: str) -> None:
        self.notes.print(Text(f"\n{text}", style="bold"))

    def verdict(self, holds: bool, text: str) -> bool:
        """Says whether something holds, and gives it back."""
        self.note(f"{'ok' if holds else 'NOT OK'}: {text}", style="green" if holds else "bold red")
        return holds

    @contextmanager
    def progress(self, unit: str, total: int) -> Iterator[Callable[[int], None]]:
        """Takes the count so far: a bar on a terminal, a line every few seconds elsewhere."""
        if self.notes.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn())
            with Progress(*columns, console=self.notes, transient=True) as bar:
                task = bar.add_task(unit, total=total)
                yield lambda count: bar.update(task, completed=count)
            return
        last_s = time.monotonic()

        def line(count: int) -> None:
            nonlocal last_s
            if time.monotonic() - last_s > _PROGRESS_EVERY_S:
                last_s = time.monotonic()
                self.note(f"{count:,} of {total:,} {unit}")

        yield line

    def rows(self, rows: pa.Table, note: str = "", wide: Sequence[str] = ()) -> None:
        """A whole result; the texts of ``wide`` columns are cut to a line where they are to be looked at."""
        if self.form is Format.JSON:
            self.json(rows)
            return
        rows = cut(rows, wide)
        if self.is_terminal:
            self._framed(rows)
        else:
            self.plain(rows)
        self.note(f"{counted(rows.num_rows, 'row')}{', ' + note if note else ''}")

    def json(self, rows: pa.Table) -> None:
        for line in json_text.objects(rows):
            self.output.write(line + "\n")
        self.output.flush()

    def plain(self, rows: pa.Table) -> None:
        columns = Columns(rows.schema)
        lines = texts(rows)
        columns.widen(lines)
        self.output.write("\n".join([*columns.header(), *(columns.line(values) for values in lines)]) + "\n")
        self.output.flush()

    def _framed(self, rows: pa.Table) -> None:
        table = Table(box=box.SQUARE, header_style="bold", show_edge=True)
        for column in rows.schema:
            table.add_column(column.name, justify="right" if to_the_right(column.type) else "left", overflow="fold")
        delta = rows.schema.get_field_index(WIRE_DELTA)
        for values in texts(rows.slice(0, _SHOWN_ON_TERMINAL)):
            style = _STYLES.get(values[delta], "") if delta >= 0 else ""
            table.add_row(*(Text(value, style="dim" if value == NULL else "") for value in values), style=style)
        self.console.print(table)
        if rows.num_rows > _SHOWN_ON_TERMINAL:
            self.note(
                f".. and {counted(rows.num_rows - _SHOWN_ON_TERMINAL, 'row')} more; add LIMIT, or write the output to"
                " a file"
            )

    def components(self, lines: Sequence[ComponentStatus]) -> None:
        """What runs of the stack."""
        columns = {
            "component": [line.name for line in lines],
            "state": [line.phase.value for line in lines],
            "address": [line.endpoint for line in lines],
            "pid": [line.pid for line in lines],
            "log": [str(line.log) for line in lines],
        }
        self.rows(pa.table(columns, schema=_COMPONENTS))

    def raw(self, line: str) -> None:
        """A line of somebody else's, as it is."""
        self.output.write(line + "\n")
        self.output.flush()

    def changelog(self, schema: pa.Schema, wide: Sequence[str] = ()) -> ChangelogLines:
        """Rows that come one after another under one header; texts of ``wide`` columns are cut as in ``rows``."""
        return ChangelogLines(self, schema, wide)


def cut(rows: pa.Table, wide: Sequence[str]) -> pa.Table:
    """The rows with so much of the texts of ``wide`` columns as there is room for."""
    for name in wide:
        texts_of = rows.column(name).to_pylist()
        shown = pa.array([None if one is None else beginning(one) for one in texts_of], pa.string())
        rows = rows.set_column(rows.column_names.index(name), name, shown)
    return rows


class Columns:
    """Text columns that grow with what they hold."""

    def __init__(self, schema: pa.Schema) -> None:
        self._names = schema.names
        self._right = [to_the_right(field.type) for field in schema]
        self._widths = [len(name) for name in schema.names]

    def widen(self, lines: Sequence[Sequence[str]]) -> bool:
        """Make room for ``lines``; whether a column had to grow."""
        before = list(self._widths)
        for values in lines:
            self._widths = [max(width, len(value)) for width, value in zip(self._widths, values, strict=True)]
        return before != self._widths

    def header(self) -> list[str]:
        return [self.line(self._names), "  ".join("-" * width for width in self._widths)]

    def line(self, values: Sequence[str]) -> str:
        cells = zip(values, self._widths, self._right, strict=True)
        return "  ".join(value.rjust(width) if right else value.ljust(width) for value, width, right in cells).rstrip()


class ChangelogLines:
    """The rows of a running query: a header, then a line per row; on a terminal insertions have a plus in front and are
    green, retractions a minus and red.
    """

    def __init__(self, screen: Screen, schema: pa.Schema, wide: Sequence[str] = ()) -> None:
        self._screen = screen
        self._wide = wide
        self._columns = Columns(schema)
        self._delta = schema.get_field_index(WIRE_DELTA)
        self._indent = "  " if screen.is_terminal and self._delta >= 0 else ""
        self._begun = False
        self.count = 0

    def add(self, rows: pa.Table) -> None:
        """The next ones; none is a sign of life of who makes them."""
        self.count += rows.num_rows
        if rows.num_rows == 0:
            self._screen.expect_reader()
            return
        if self._screen.form is Format.JSON:
            self._screen.json(rows)
            return
        lines = texts(cut(rows, self._wide))
        # A header that fits no longer is written again, once per growth.
        if self._columns.widen(lines) or not self._begun:
            self._begun = True
            for header in self._columns.header():
                self._screen.line(self._indent + header, "bold")
        for values in lines:
            delta = values[self._delta] if self._delta >= 0 else ""
            sign = _SIGNS.get(delta, self._indent) if self._indent else ""
            self._screen.line(sign + self._columns.line(values), _STYLES.get(delta, ""))
        self._screen.output.flush()
