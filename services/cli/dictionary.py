"""``dovetail dictionary``: what dictionaries there are, how they do, and their refresh."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import pyarrow as pa
import typer

from changelog.errors import SqlError
from enrichment.definitions import definition_of
from runtime.settings import read_settings
from services.cli.cells import texts
from services.cli.failures import told
from services.cli.run import show_result
from services.cli.show import Format, Screen
from services.session import Session
from services.session.dictionaries.dictionary_statements import dictionary, keys_of, refresh
from services.session.dictionaries.sources import check_source
from services.session.dictionaries.system_dictionaries import statistics
from sql.syntax.statements import Describe, Drop, Show, ShowCreate

app = typer.Typer(
    help="Dictionaries: tables elsewhere, looked up by key.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(help="A dictionary.")]
Output = Annotated[Format, typer.Option("--output", "-o", help="How rows are written.")]


@contextmanager
def _session(screen: Screen) -> Iterator[Session]:
    with told(screen), Session.open(read_settings(), say=screen.note) as session:
        yield session


@app.command("list", epilog="Example: `dovetail dictionary list`")
def list_dictionaries(output: Output = Format.TABLE) -> None:
    """List the dictionaries."""
    screen = Screen(output)
    with _session(screen) as session:
        show_result(screen, session.execute(Show("dictionaries")))


@app.command(epilog="Example: `dovetail dictionary show products`")
def show(name: Name, output: Output = Format.TABLE) -> None:
    """Show the definition, without passwords, and the columns; ask the source whether it answers."""
    screen = Screen(output)
    with _session(screen) as session:
        definition = dictionary(session.context, name)
        show_result(screen, session.execute(ShowCreate(name)))
        show_result(screen, session.execute(Describe(name)))
        check_source(session.context, definition_of(definition))
        screen.note("the source answers, and has the columns", style="green")


@app.command(epilog="Examples: `dovetail dictionary stats`, `dovetail dictionary stats products -o json`")
def stats(
    name: Annotated[str | None, typer.Argument(help="A dictionary; none: all.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show the figures of all workers together: hits of each tier, load times, errors."""
    screen = Screen(output)
    with _session(screen) as session:
        if name is not None:
            dictionary(session.context, name)
        rows = statistics(session.context, name)
        screen.rows(upright(rows) if output is Format.TABLE and rows.num_rows else rows)


@app.command(
    "refresh",
    epilog="Examples: `dovetail dictionary refresh products --all`, "
    "`dovetail dictionary refresh products --key p1 --key p2`, `dovetail dictionary refresh products --prefix eu-`",
)
def refresh_rows(
    name: Name,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A key; may be given again. Of several columns: a JSON array."),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="The keys that begin with this text.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All keys; the same as no option.")] = False,
) -> None:
    """Let every worker ask the source again. Exit code 1 if a worker does not answer; it is safe to repeat."""
    screen = Screen()
    with _session(screen) as session:
        if sum((bool(key), prefix is not None, everything)) > 1:
            raise SqlError("a refresh is of keys, of a prefix or of all", fix="give --key, --prefix or --all alone")
        definition = definition_of(dictionary(session.context, name))
        keys = keys_of(definition, key) if key else None
        answers = refresh(session.context, name, keys, prefix)
        for answer in answers.given:
            screen.note(f"{answer.worker}: {figures(answer.outcome.detail)}")
        screen.note(f"refreshed {name}, {len(answers.given)} workers answered", style="green")


@app.command(epilog="Example: `dovetail dictionary drop products`")
def drop(
    name: Name,
    cascade: Annotated[bool, typer.Option(help="Drop the views that use it, too.")] = False,
) -> None:
    """Drop a dictionary. Its source is not touched."""
    screen = Screen()
    with _session(screen) as session:
        show_result(screen, session.execute(Drop("dictionary", name, cascade=cascade)))


def figures(detail: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in detail.items()) or "done"


def upright(rows: pa.Table) -> pa.Table:
    """A row as a column: what is too wide for a screen is read from top to bottom."""
    lines = texts(rows)
    names = [line[0] for line in lines]
    columns = [pa.array(rows.column_names[1:]), *(pa.array(line[1:], pa.string()) for line in lines)]
    return pa.table(columns, names=["figure", *names])
