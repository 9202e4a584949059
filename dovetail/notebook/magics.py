"""``%dovetail``, ``%%dovetail`` and ``%dovetail_changes``."""

from __future__ import annotations

from typing import assert_never

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from dovetail.notebook.failures import as_cell_failures
from dovetail.notebook.live_table import LivePicture, LiveTable
from dovetail.notebook.options import cell_options, changes_options, settings_of, words_of
from dovetail.notebook.tables import Bundle, answer_of, lines_of
from dovetail.notebook.workplace import Workplace
from dovetail.query_result import QueryResult
from dovetail.services.session import Done, Live, Result, Rows, Text
from dovetail.services.session.result import Changelog
from dovetail.services.session.tail.topic_views import TopicTail
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.redact import redacted


class Magics:
    """Those of one notebook, over one session."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._workplace = Workplace(print)
        self._cell = cell_options()
        self._changes = changes_options()

    def register(self) -> None:
        known = self._shell.magics_manager
        known.register_function(self.connect, "line", "dovetail")
        known.register_function(self.cell, "cell", "dovetail")
        known.register_function(self.changes, "line", "dovetail_changes")

    def connect(self, line: str) -> None:
        """Connect to the local stack, or to what settings name: ``%dovetail brokers=kafka:9092``."""
        with as_cell_failures():
            session = self._workplace.connect(settings_of(line))
            _show(lines_of(redacted(f"connected to Kafka at {session.context.brokers}")))

    def cell(self, line: str, cell: str) -> None:
        """Run SQL statements, in order, up to the first that fails; what each gives is shown below the cell."""
        with as_cell_failures():
            options = self._cell.parse_args(words_of(line))
            # Read as a whole first: a syntax error at the end is told before anything has been done.
            for statement in parse(cell):
                result = self._workplace.session().execute(statement)
                self._show(result, options.rows, until_idle=options.until_idle)
                if options.into and not isinstance(result, Live):
                    self._shell.user_ns[options.into] = QueryResult.of(result)

    def changes(self, line: str) -> None:
        """What is written to a stream or a view, in a table that changes: ``%dovetail_changes priced``."""
        with as_cell_failures():
            options = self._changes.parse_args(words_of(line))
            context = self._workplace.session().context
            tail = TopicTail.of(context, options.name, from_beginning=options.from_beginning, limit=options.limit)
            self._follow(tail, options.rows, until_idle=options.until_idle)

    def _show(self, result: Result, rows: int, *, until_idle: bool) -> None:
        match result:
            case Done() | Text():
                _show(lines_of(redacted(result.text)))
            case Rows():
                _show(answer_of(result.table, rows, result.note, result.wide))
            case Live():
                for note in result.notes:
                    _show(lines_of(note))
                try:
                    with result.changelog as changelog:
                        self._follow(changelog, rows, until_idle=until_idle)
                except KeyboardInterrupt:
                    _show(lines_of("interrupted"))
            case _:
                assert_never(result)

    def _follow(self, changelog: Changelog, rows: int, *, until_idle: bool) -> None:
        batches = self._workplace.looked_after(changelog.batches(until_idle=until_idle))
        LiveTable(changelog.schema, rows, _shown).follow(batches)


def _show(bundle: Bundle) -> None:
    display(bundle, raw=True)


def _shown(bundle: Bundle) -> LivePicture:
    output: LivePicture = display(bundle, raw=True, display_id=True)
    return output
