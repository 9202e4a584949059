"""The commands on the users of the HTTP server."""

from __future__ import annotations

import pyarrow as pa

from dovetail.runtime.clock import now_ms
from dovetail.services.cli.failures import reporting_errors
from dovetail.services.cli.row_format import Format
from dovetail.services.cli.show import Screen
from dovetail.services.known_stacks import found_settings
from dovetail.services.role import Role
from dovetail.services.serve.access.users import UserFile

_USERS = pa.schema([("user", pa.string()), ("role", pa.string()), ("since", pa.timestamp("ms", tz="UTC"))])


def add(name: str, role: Role) -> None:
    screen = Screen()
    with reporting_errors(screen):
        token = UserFile.of(found_settings(say=screen.note)).add(name, role, now_ms())
        screen.note(f'the token of "{name}", {role}; it is shown this once:')
        screen.raw(token)


def list_users(output: Format) -> None:
    screen = Screen(output)
    with reporting_errors(screen):
        users = UserFile.of(found_settings(say=screen.note)).read() or ()
        rows = [{"user": user.name, "role": user.role.value, "since": user.added_ms} for user in users]
        screen.rows(pa.Table.from_pylist(rows, schema=_USERS))


def revoke(name: str) -> None:
    screen = Screen()
    with reporting_errors(screen):
        left = UserFile.of(found_settings(say=screen.note)).revoke(name)
        screen.note(f'the token of "{name}" is not accepted any more', style="green")
        if not any(user.role is Role.ADMIN for user in left):
            nobody = "no admin remains" if left else "no user remains, so no one can sign in"
            screen.note(f"{nobody}: dovetail user add NAME --role admin", style="yellow")
