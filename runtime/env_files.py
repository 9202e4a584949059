"""``.env``: settings that a folder brings along. It is read where nobody but its owner may have written it."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from dovetail.changelog.errors import StackError

_ROOT = 0


def expect_own(path: Path) -> None:
    """Raises StackError for a file that is of another user than this one and root, or that others may write to."""
    try:
        found = path.stat()
    except OSError:
        return  # there is none, or none that can be read
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise _of_others(path, "is another user's", f"chown {os.geteuid()} {path.absolute()}")
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid)):
        raise _of_others(path, "may be written to by others than its owner", f"chmod go-w {path.absolute()}")


def _is_private(group: int) -> bool:
    """Whether a group is this user's own, with nobody else in it, as many systems give one to each user."""
    try:
        user = pwd.getpwuid(os.geteuid())
        return user.pw_gid == group and set(grp.getgrgid(group).gr_mem) <= {user.pw_name}
    except KeyError:
        return False


def _of_others(path: Path, reason: str, fix: str) -> StackError:
    return StackError(
        f"the file of settings {reason}, and is not read",
        where=str(path.absolute()),
        fix=f"look through it, then: {fix}; or run the command in another folder",
    )
