"""``dovetail dictionary``: what dictionaries there are, how they do, and their refresh."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is run

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.services.cli.row_format import Format
from dovetail.services.cli.shell import names

app = typer.Typer(
    help="Dictionaries: tables elsewhere, looked up by key.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(help="A dictionary.", autocompletion=names.dictionaries)]
Output = Annotated[Format, typer.Option("--output", "-o", help="How rows are written.")]


@app.command("list", epilog="Example: `dovetail dictionary list`")
def list_dictionaries(output: Output = Format.TABLE) -> None:
    """List the dictionaries."""
    from dovetail.services.cli.dictionaries import dictionary_commands

    dictionary_commands.list_dictionaries(output)


@app.command(epilog="Example: `dovetail dictionary show products`")
def show(name: Name, output: Output = Format.TABLE) -> None:
    """Show the definition, without passwords, and the columns; ask the source whether it answers."""
    from dovetail.services.cli.dictionaries import dictionary_commands

    dictionary_commands.show(name, output)


@app.command(epilog="Examples: `dovetail dictionary stats`, `dovetail dictionary stats products -o json`")
def stats(
    name: Annotated[
        str | None, typer.Argument(help="A dictionary; none: all.", autocompletion=names.dictionaries)
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show the figures of all workers together: hits of each tier, load times, errors."""
    from dovetail.services.cli.dictionaries import dictionary_commands

    dictionary_commands.stats(name, output)


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
    from dovetail.services.cli.dictionaries import dictionary_commands

    dictionary_commands.refresh_rows(name, key or (), prefix, everything=everything)


@app.command(epilog="Example: `dovetail dictionary drop products`")
def drop(
    name: Name,
    cascade: Annotated[bool, typer.Option(help="Drop the views that use it, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether these views may go.")] = False,
) -> None:
    """Drop a dictionary. Its source is not touched."""
    from dovetail.services.cli.dictionaries import dictionary_commands

    dictionary_commands.drop(name, cascade=cascade, yes=yes)
