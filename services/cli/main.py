"""``dovetail``: the stack, the console, scripts, topics and views, from the command line.

What a command needs is imported when it is run: ``--help``, completion and a typing error wait for nothing but this.
"""

# ruff: noqa: PLC0415 - a command imports what it needs when it is run

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dovetail.services.cli.demo import EVENTS
from dovetail.services.cli.dictionaries import dictionary
from dovetail.services.cli.other_commands import Commands
from dovetail.services.cli.row_format import Format, Mode
from dovetail.services.cli.server import user
from dovetail.services.cli.shell import names
from dovetail.services.cli.unused_library import leave_out
from dovetail.services.file_format import FileFormat
from dovetail.services.role import Role

app = typer.Typer(
    name="dovetail",
    cls=Commands,
    help="Joins of Kafka streams in SQL; every result is a changelog in Kafka.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(dictionary.app, name="dictionary", epilog="Example: `dovetail dictionary stats products`")
app.add_typer(user.app, name="user", epilog="Example: `dovetail user add ann --role reader`")

Output = Annotated[Format, typer.Option("--output", "-o", help="How rows are written.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether DROP .. CASCADE may drop what it drops.")]
UntilIdle = Annotated[bool, typer.Option("--until-idle", help="End a streaming SELECT when its input is answered.")]

AsTable = Annotated[
    bool, typer.Option("--table", help="On a terminal: the current rows in place, not each of their changes.")
]


def _version(wanted: bool) -> None:
    if wanted:
        show_version()
        raise typer.Exit


@app.callback()
def _options(
    *, _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="As `version`.")] = False
) -> None:
    """What is asked of the program rather than of a command."""


@app.command(epilog="Examples: `dovetail up`, `dovetail up --without redis`")
def up(
    without: Annotated[list[str] | None, typer.Option(help="A component to leave out; may be given again.")] = None,
) -> None:
    """Start the local stack of this folder: Kafka, Redis, registry, Spark runner, lookup worker, HTTP server."""
    from dovetail.services.cli import stack_commands

    stack_commands.up(without or ())


@app.command(epilog="Example: `dovetail down`")
def down() -> None:
    """Stop the stack of this folder, or of one around it. Topics, views and checkpoints stay on disk."""
    from dovetail.services.cli import stack_commands

    stack_commands.down()


@app.command(epilog="Example: `dovetail status`")
def status(output: Output = Format.TABLE) -> None:
    """Show what runs: every component, its address and its log. Exit code 0 only if all is well."""
    from dovetail.services.cli import stack_commands

    stack_commands.status(output)


@app.command(epilog="Examples: `dovetail logs`, `dovetail logs spark -f`, `dovetail logs view orders_priced`")
def logs(
    component: Annotated[
        str,
        typer.Argument(
            help="kafka, redis, spark, worker, serve, supervisor, or: view.", autocompletion=names.components
        ),
    ] = "spark",
    view: Annotated[
        str | None, typer.Argument(help="After the word view: the name of one.", autocompletion=names.views)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with the lines to come.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="So many lines of the past.")] = 100,
) -> None:
    """Show the log of a component, or what a view alone has to say, with batch and time, wherever it runs."""
    from dovetail.services.cli import stack_commands

    stack_commands.logs(component, view, follow=follow, lines=lines)


@app.command(epilog='Examples: `dovetail sql`, `dovetail sql -c "SHOW STREAMS"`, `dovetail sql < setup.sql`')
def sql(
    command: Annotated[
        str | None, typer.Option("--command", "-c", help="Run these statements instead of the console.")
    ] = None,
    until_idle: UntilIdle = False,
    yes: Yes = False,
    table: AsTable = False,
    output: Output = Format.TABLE,
) -> None:
    """Open the SQL console; with -c or a pipe, run statements and end."""
    from dovetail.services.cli import session_commands

    session_commands.sql(command, until_idle=until_idle, yes=yes, output=output, mode=_mode(table))


@app.command(
    epilog="Examples: `dovetail run examples/clickthrough.sql --until-idle`, `dovetail run shop.sql views/ --dry-run`"
)
def run(
    paths: Annotated[
        list[Path],
        typer.Argument(exists=True, readable=True, help="Files of SQL statements; of a folder all .sql, by name."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the statements, and run none.")] = False,
    until_idle: UntilIdle = False,
    yes: Yes = False,
    table: AsTable = False,
    output: Output = Format.TABLE,
) -> None:
    """Run the statements of files, in order, up to the first that fails."""
    from dovetail.services.cli import session_commands

    session_commands.run(paths, dry_run=dry_run, until_idle=until_idle, yes=yes, output=output, mode=_mode(table))


@app.command(epilog="Examples: `dovetail tail orders_priced --from-beginning`, `dovetail tail orders -n 10 -o json`")
def tail(
    name: Annotated[str, typer.Argument(help="A stream, a view, or any topic.", autocompletion=names.topics)],
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", "-b", help="All records, not only those to come.")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="End after so many rows.")] = None,
    table: AsTable = False,
    output: Output = Format.TABLE,
) -> None:
    """Follow a topic: its rows as they come, retractions in red. Ctrl-C ends it."""
    from dovetail.services.cli import session_commands

    session_commands.tail(name, from_beginning=from_beginning, limit=limit, output=output, mode=_mode(table))


@app.command(
    epilog="Examples: `dovetail insert orders orders.csv --wait orders_priced`, `kcat .. | dovetail insert orders`"
)
def insert(
    stream: Annotated[str, typer.Argument(help="A stream or a table.", autocompletion=names.topics)],
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files of rows; without any, lines of JSON from standard input.")
    ] = None,
    kind: Annotated[
        FileFormat | None, typer.Option("--format", help="What they hold, whatever they are called.")
    ] = None,
    wait: Annotated[str, typer.Option("--wait", help="A view: end once it includes the rows.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Write the rows of files (JSON lines, CSV, Parquet, Arrow) into a stream, 50,000 in a transaction."""
    from dovetail.services.cli import session_commands

    session_commands.insert(stream, files or [Path("-")], kind=kind, wait=wait, output=output)


def _mode(table: bool) -> Mode:
    return Mode.TABLE if table else Mode.CHANGELOG


@app.command(
    epilog="Examples: `dovetail replay orders_priced.dead_letter --dry-run`, "
    "`dovetail replay orders_priced.dead_letter --reason 'column price%'`"
)
def replay(
    topic: Annotated[str, typer.Argument(help="A topic of dead letters.", autocompletion=names.dead_letter_topics)],
    reason: Annotated[
        list[str] | None, typer.Option(help="A pattern as of LIKE: only letters of such a reason; may be given again.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be put back, and change nothing.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Put dead letters back on the topics they came from, each once, however often it is repeated."""
    from dovetail.services.cli import session_commands

    session_commands.replay(topic, reasons=reason or (), dry_run=dry_run, output=output)


@app.command(epilog="Example: `dovetail verify orders_priced`")
def verify(
    view: Annotated[str, typer.Argument(help="A materialized view.", autocompletion=names.views)],
    output: Output = Format.TABLE,
) -> None:
    """Compute a view again from its inputs, and compare with its topic.

    Exit code 0 if they agree, 1 if they differ, 3 if that cannot be decided.
    """
    from dovetail.services.cli import session_commands

    session_commands.verify(view, output)


@app.command(
    epilog='Examples: `dovetail why orders_priced "order_id = 5"`, `dovetail why --not orders_priced "id = 7"`'
)
def why(
    view: Annotated[str, typer.Argument(help="A materialized view.", autocompletion=names.views)],
    where: Annotated[str, typer.Argument(help="A condition on its columns, as in WHERE.")],
    absent: Annotated[bool, typer.Option("--not", help="Why there is no such row.")] = False,
    since: Annotated[str, typer.Option(help="Pass over older records of append streams: a time in UTC, or -2h.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Show the records behind some rows of a view; or, where there are none, what became of those about them."""
    from dovetail.services.cli import session_commands

    session_commands.why(view, where, absent=absent, since=since, output=output)


@app.command(epilog="Example: `dovetail demo`")
def demo(
    events: Annotated[int, typer.Option(min=1, help="Events of the click-through pipeline.")] = EVENTS,
) -> None:
    """Run three examples through a stack of their own, start to end. A running stack is not touched."""
    from dovetail.runtime.settings import read_settings
    from dovetail.services.cli.demo import demonstration
    from dovetail.services.cli.failures import reporting_errors
    from dovetail.services.cli.show import Screen

    screen = Screen()
    with reporting_errors(screen):
        raise typer.Exit(demonstration.run(read_settings(), screen, events))


@app.command(epilog="Example: `dovetail worker`")
def worker() -> None:
    """Run a lookup worker until Ctrl-C. The partitions of lookup queries spread over all workers that run."""
    from dovetail.services.cli.failures import reporting_errors
    from dovetail.services.cli.show import Screen
    from dovetail.services.cli.worker import work
    from dovetail.services.known_stacks import found_settings

    screen = Screen()
    with reporting_errors(screen):
        work(found_settings(say=screen.note))


@app.command(epilog="Example: `dovetail serve`")
def serve() -> None:
    """Run the HTTP server until Ctrl-C: SQL and changes for anyone who has a token. `dovetail up` starts one too."""
    from dovetail.services.cli.failures import reporting_errors
    from dovetail.services.cli.server.serve import run_server
    from dovetail.services.cli.show import Screen
    from dovetail.services.known_stacks import found_settings

    screen = Screen()
    with reporting_errors(screen):
        run_server(found_settings(say=screen.note))


@app.command(epilog="Example: `dovetail mcp`, as the command of a server in the settings of the program")
def mcp(
    role: Annotated[Role, typer.Option(help="What its statements may do.")] = Role.READER,
) -> None:
    """Serve a program that speaks the Model Context Protocol, over standard input and output, until it ends."""
    from dovetail.services.cli.failures import reporting_errors
    from dovetail.services.cli.server.agents import serve_agents
    from dovetail.services.cli.show import Screen

    with reporting_errors(Screen()):
        serve_agents(role)


@app.command(epilog="Example: `dovetail lsp`, as the command of a language server in the settings of the editor")
def lsp() -> None:
    """Serve an editor of `.sql` files by the Language Server Protocol, over standard input and output."""
    from dovetail.services.cli.failures import reporting_errors
    from dovetail.services.cli.server.editors import serve_editor
    from dovetail.services.cli.show import Screen

    with reporting_errors(Screen()):
        serve_editor()


@app.command(epilog="Examples: `dovetail docs`, `dovetail docs asof`, `dovetail docs late rows`")
def docs(
    words: Annotated[list[str] | None, typer.Argument(help="A page, or words of a heading.")] = None,
) -> None:
    """Read the documentation: what pages there are, one of them, or the sections about something."""
    from dovetail.services.cli.failures import reporting_errors
    from dovetail.services.cli.manual import show_manual
    from dovetail.services.cli.show import Screen

    screen = Screen()
    with reporting_errors(screen):
        show_manual(screen, " ".join(words or ()))


@app.command("version", epilog="Example: `dovetail version`")
def show_version() -> None:
    """Show the version."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("dovetail")
    except PackageNotFoundError:
        installed = "from a checkout"
    typer.echo(f"dovetail {installed}")


def main() -> None:
    """The console script."""
    os.umask(0o077)
    leave_out("pandas")
    app(prog_name="dovetail")


if __name__ == "__main__":
    main()
