"""``dovetail user``: who may ask the HTTP server, and as what."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is run

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.services.cli.row_format import Format
from dovetail.services.role import Role

app = typer.Typer(
    help="Users of the HTTP server, and their tokens.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(help="A user.")]


@app.command(epilog="Example: `dovetail user add ann --role reader`")
def add(
    name: Name,
    role: Annotated[Role, typer.Option(help="What the user may do: look; change rows too; change everything.")],
) -> None:
    """Add a user and print their token, once. From the first user on, the server asks everybody for a token."""
    from dovetail.services.cli.server import user_commands

    user_commands.add(name, role)


@app.command("list", epilog="Example: `dovetail user list`")
def list_users(
    output: Annotated[Format, typer.Option("--output", "-o", help="How rows are written.")] = Format.TABLE,
) -> None:
    """List the users, without their tokens."""
    from dovetail.services.cli.server import user_commands

    user_commands.list_users(output)


@app.command(epilog="Example: `dovetail user revoke ann`")
def revoke(name: Name) -> None:
    """Take the token of a user back, at once: also what it follows at the moment ends."""
    from dovetail.services.cli.server import user_commands

    user_commands.revoke(name)
