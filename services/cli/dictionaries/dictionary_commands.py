"""The commands on dictionaries: list, show, stats, refresh, drop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.changelog.wording import counted
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.cli.cells import texts
from dovetail.services.cli.row_format import Format
from dovetail.services.cli.run import show_result
from dovetail.services.cli.session_commands import opened
from dovetail.services.cli.show import Screen
from dovetail.services.session.dictionaries.dictionary_statements import dictionary, keys_of, refresh
from dovetail.services.session.dictionaries.sources import check_source
from dovetail.services.session.dictionaries.system_dictionaries import statistics
from dovetail.sql.syntax.statements import Describe, Drop, Show, ShowCreate


def list_dictionaries(output: Format) -> None:
    screen = Screen(output)
    with opened(screen) as session:
        show_result(screen, session.execute(Show("dictionaries")))


def show(name: str, output: Format) -> None:
    screen = Screen(output)
    with opened(screen) as session:
        definition = dictionary(session.context, name)
        show_result(screen, session.execute(ShowCreate(name)))
        show_result(screen, session.execute(Describe(name)))
        check_source(session.context, definition_of(definition))
        screen.note("the source answers, and has the columns", style="green")


def stats(name: str | None, output: Format) -> None:
    screen = Screen(output)
    with opened(screen) as session:
        if name is not None:
            dictionary(session.context, name)
        rows = statistics(session.context, name)
        screen.rows(upright(rows) if output is Format.TABLE and rows.num_rows else rows)


def refresh_rows(name: str, key: Sequence[str], prefix: str | None, *, everything: bool) -> None:
    screen = Screen()
    with opened(screen) as session:
        if sum((bool(key), prefix is not None, everything)) > 1:
            raise SqlError("a refresh is of keys, of a prefix or of all", fix="give --key, --prefix or --all alone")
        definition = definition_of(dictionary(session.context, name))
        keys = keys_of(definition, key) if key else None
        answers = refresh(session.context, name, keys, prefix)
        for answer in answers.given:
            screen.note(f"{answer.worker}: {figures(answer.outcome.detail)}")
        screen.note(f"refreshed {name}, {counted(len(answers.given), 'worker')} answered", style="green")


def drop(name: str, *, cascade: bool, yes: bool) -> None:
    screen = Screen()
    with opened(screen, yes=yes) as session:
        show_result(screen, session.execute(Drop("dictionary", name, cascade=cascade)))


def figures(detail: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in detail.items()) or "done"


def upright(rows: pa.Table) -> pa.Table:
    """A row as a column: what is too wide for a screen is read from top to bottom."""
    lines = texts(rows)
    names = [line[0] for line in lines]
    columns = [pa.array(rows.column_names[1:]), *(pa.array(line[1:], pa.string()) for line in lines)]
    return pa.table(columns, names=["figure", *names])
