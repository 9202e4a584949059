"""``dovetail mcp``: tools for programs that speak the Model Context Protocol, over standard input and output."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import read_settings
from dovetail.services.known_stacks import found_settings
from dovetail.services.role import Role
from dovetail.services.session import Session
from dovetail.services.session.context import Say


def serve_agents(role: Role) -> None:
    """Until the input ends. Raises StackError where the library of the protocol is not installed."""
    if find_spec("mcp") is None:
        raise StackError(
            "the library of the Model Context Protocol is not installed",
            where="dovetail mcp",
            fix="pip install 'dovetail[mcp]'",
        )
    from dovetail.services.mcp.tools import Tools, server_of  # noqa: PLC0415 - the library may not be there

    within_s = read_settings().serve_statement_s
    server_of(Tools(_opened, role, within_s), version("dovetail")).run()


def _opened(say: Say) -> Session:
    """Of the stack that runs now: it may have been started again since the last call."""
    return Session.open(found_settings(say=say), say=say)
