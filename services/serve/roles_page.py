"""docs/roles.md, made from the code: ``python -m dovetail.services.serve.roles_page`` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from fastapi.openapi.utils import get_openapi

from dovetail.services.role import Role
from dovetail.services.serve.routes import ROUTES
from dovetail.services.session.statement_table import STATEMENTS
from dovetail.sql.syntax.statements import Statement

PAGE = Path(__file__).resolve().parents[2] / "docs" / "roles.md"
_HEAD = """# Rights of each role

This page is made from the code, by `python -m dovetail.services.serve.roles_page`.

A user of the [HTTP server](serve.md#who-may-ask) has one role, for all streams, views, dictionaries and topics; there
are no rights on single ones. Where no user was ever added, anyone who reaches the port is an `admin`. The command line
asks no role: what it may do, the user of the machine may.

## Statements

All statements of a request are read before the first is run, and the role must allow each. `/v1/explain` asks for the
role of the statement that it explains.

"""
_PATHS = """
## Paths

`anybody` needs no token. A path of statements asks for the role of each statement besides.

"""
_ANYBODY = "anybody"


def page() -> str:
    statements = ((named(kind), handler.role) for kind, handler in STATEMENTS.items())
    paths = ((f"`{path}`", role) for path, role in role_of_paths().items())
    return (
        _HEAD
        + _table("statement", list(Role), sorted(statements))
        + _PATHS
        + _table("path", [None, *Role], sorted(paths, key=lambda path: path[0].split()[::-1]))
    )


def role_of_paths() -> dict[str, Role | None]:
    """The least role of each method and path; None: anybody, without a token."""
    described = get_openapi(title="", version="", routes=ROUTES)["paths"]
    return {
        f"{method.upper()} {path}": Role(operation["security"][0]["token"][0]) if "security" in operation else None
        for path, methods in described.items()
        for method, operation in methods.items()
    }


def named(kind: type[Statement]) -> str:
    """``SHOW CREATE`` of ``ShowCreate``."""
    return " ".join(re.findall("[A-Z][a-z]*", kind.__name__)).upper()


def _table(what: str, roles: list[Role | None] | list[Role], rows: Iterable[tuple[str, Role | None]]) -> str:
    head = [what, *(f"`{role}`" if role else _ANYBODY for role in roles)]
    lines = [head, ["---"] * len(head)]
    lines += [[name, *("yes" if _may(role, needed) else "" for role in roles)] for name, needed in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _may(role: Role | None, needed: Role | None) -> bool:
    return needed is None or (role is not None and role.includes(needed))


if __name__ == "__main__":
    PAGE.write_text(page())
