"""The first user of a server that many can reach from its start: an admin, whose token is left in a file."""

from __future__ import annotations

import logging
import os

from dovetail.runtime.clock import now_ms
from dovetail.runtime.settings import Settings
from dovetail.services.role import Role
from dovetail.services.serve.access.users import UserFile

_LOG = logging.getLogger("dovetail.serve")


def add_first_admin(settings: Settings) -> None:
    """Where a setting names one and no file of users is there yet. Raises StackError for a name that no user has."""
    users, name = UserFile.of(settings), settings.serve_first_admin
    if name is None or users.path.exists():
        return
    place = users.path.with_name("first-admin-token")
    place.unlink(missing_ok=True)
    # The file first: a user whose token nobody has been told could not be made again.
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{users.add(name, Role.ADMIN, now_ms())}\n")
    _LOG.info('added the admin "%s", whose token is in %s: read it and remove the file', name, place)
