"""``dovetail``: the stack, the console, scripts, topics and views, from the command line."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from runtime.settings import Settings, read_settings
from services.cli import dictionary
from services.cli.console import Console
from services.cli.demo import demonstration
from services.cli.failures import FAILED, told
from services.cli.run import run_script
from services.cli.show import Format, Screen, rows_text
from services.cli.tail import tail_rows
from services.cli.worker import work
from services.session import Session
from services.stack import Stack
from services.stack.components import COMPONENT_NAMES, component
from services.stack.state import Phase

app = typer.Typer(
    name="dovetail",
    help="Joins of Kafka streams in SQL; every result is a changelog in Kafka.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(dictionary.app, name="dictionary", epilog="Example: `dovetail dictionary stats products`")

Output = Annotated[Format, typer.Option("--output", "-o", help="How rows are written.")]
UntilIdle = Annotated[bool, typer.Option("--until-idle", help="End a streaming SELECT when its input is answered.")]


def _settings() -> Settings:
    return read_settings()


def _session(screen: Screen) -> Session:
    return Session.open(_settings(), say=screen.note)


@app.command(epilog="Examples: `dovetail up`, `dovetail up --without redis`")
def up(
    without: Annotated[list[str] | None, typer.Option(help="A component to leave out; may be given again.")] = None,
) -> None:
    """Start the local stack: Kafka, Redis, the Spark runner and a lookup worker. What runs already is left alone."""
    screen = Screen()
    with told(screen):
        stack = Stack(_settings())
        left_out = {component(name).name for name in without or ()}
        stack.up([name for name in COMPONENT_NAMES if name not in left_out], on_progress=screen.note)
        brokers = stack.connected_settings().brokers
        screen.note(f"the stack is up{f': Kafka at {brokers}; next: dovetail sql' if brokers else ''}", style="green")


@app.command(epilog="Example: `dovetail down`")
def down() -> None:
    """Stop what `dovetail up` has started, and nothing else. Topics, views and checkpoints stay on disk."""
    screen = Screen()
    with told(screen):
        ended = Stack(_settings()).down(screen.note)
        screen.note(f"stopped {', '.join(ended)}" if ended else "nothing was running", style="green")


@app.command(epilog="Example: `dovetail status`")
def status(output: Output = Format.TABLE) -> None:
    """Show what runs: every component, its address and its log. Exit code 1 if one has failed."""
    screen = Screen(output)
    with told(screen):
        lines = Stack(_settings()).status()
        screen.components(lines)
        failed = [line for line in lines if line.phase is Phase.EXITED]
        for line in failed:
            screen.note(f"{line.name} {line.reason}; the end of its log:\n{line.log_tail}", style="red")
        if failed:
            raise typer.Exit(FAILED)


@app.command(epilog="Examples: `dovetail logs`, `dovetail logs spark -f`")
def logs(
    component: Annotated[str, typer.Argument(help="kafka, redis, spark, worker or supervisor.")] = "spark",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with the lines to come.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="So many lines of the past.")] = 100,
) -> None:
    """Show the log of a component."""
    screen = Screen()
    with told(screen):
        for line in Stack(_settings()).logs(component, follow=follow, lines=lines):
            screen.raw(line)


@app.command(epilog='Examples: `dovetail sql`, `dovetail sql -c "SHOW STREAMS"`, `dovetail sql < setup.sql`')
def sql(
    command: Annotated[
        str | None, typer.Option("--command", "-c", help="Run these statements instead of the console.")
    ] = None,
    until_idle: UntilIdle = False,
    output: Output = Format.TABLE,
) -> None:
    """Open the SQL console; with -c or a pipe, run statements and end."""
    screen = Screen(output)
    with told(screen), _session(screen) as session:
        if command is not None:
            run_script(session, screen, command, until_idle=until_idle, echo=False)
        elif sys.stdin.isatty():
            Console(session, screen).run()
        else:
            run_script(session, screen, sys.stdin.read(), until_idle=until_idle, echo=True)


@app.command(epilog="Example: `dovetail run examples/clickthrough.sql --until-idle`")
def run(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="A file of SQL statements.")],
    until_idle: UntilIdle = False,
    output: Output = Format.TABLE,
) -> None:
    """Run the statements of a file, in order, up to the first that fails."""
    screen = Screen(output)
    with told(screen), _session(screen) as session:
        run_script(session, screen, file.read_text(), until_idle=until_idle, echo=True)


@app.command(epilog="Examples: `dovetail tail orders_priced --from-beginning`, `dovetail tail orders -n 10 -o json`")
def tail(
    name: Annotated[str, typer.Argument(help="A stream, a view, or any topic.")],
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", "-b", help="All records, not only those to come.")
    ] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="End after so many rows.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Follow a topic: its rows as they come, retractions in red. Ctrl-C ends it."""
    screen = Screen(output)
    with told(screen), _session(screen) as session:
        tail_rows(session, screen, name, from_beginning=from_beginning, limit=limit)


@app.command(epilog="Example: `dovetail verify orders_priced`")
def verify(
    view: Annotated[str, typer.Argument(help="A materialized view.")],
    output: Output = Format.TABLE,
) -> None:
    """Compute a view again from its inputs, and compare with its topic. Exit code 1 if they differ."""
    screen = Screen(output)
    with told(screen), _session(screen) as session:
        found = session.verify(view)
        if not found.holds:
            screen.rows(found.difference)
            counts = f"{rows_text(found.expected)} expected, {found.found:,} found"
            screen.note(f"{view} differs: {counts}", style="bold red")
            raise typer.Exit(FAILED)
        screen.note(f"{view} holds: {rows_text(found.found)}, as a batch over its inputs gives them", style="green")


@app.command(epilog="Example: `dovetail demo`")
def demo(
    events: Annotated[int, typer.Option(min=1, help="Events of the click-through pipeline.")] = demonstration.EVENTS,
) -> None:
    """Run three examples through a stack of their own, start to end. A running stack is not touched."""
    screen = Screen()
    with told(screen):
        raise typer.Exit(demonstration.run(_settings(), screen, events))


@app.command(epilog="Example: `dovetail worker`")
def worker() -> None:
    """Run a lookup worker until Ctrl-C. The partitions of lookup queries spread over all workers that run."""
    with told(Screen()):
        work(_settings())


@app.command("version", epilog="Example: `dovetail version`")
def show_version() -> None:
    """Show the version."""
    try:
        installed = version("dovetail")
    except PackageNotFoundError:
        installed = "from a checkout"
    Screen().line(f"dovetail {installed}")


if __name__ == "__main__":
    app()
