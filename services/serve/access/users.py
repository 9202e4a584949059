"""Users and their tokens, in a file that only its owner reads.

A token is 256 random bits, shown once. The file has its SHA-256: of a value that nobody can guess, a slow hash would
hide no more than a fast one does.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dovetail.changelog.errors import StackError
from dovetail.changelog.suggest import suggestion
from dovetail.runtime.settings import Settings
from dovetail.services.role import Role
from dovetail.services.stack.files import locked

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PREFIX = "dovetail_"
_BYTES = 32


@dataclass(frozen=True)
class User:
    name: str
    role: Role
    token_sha256: str = ""
    added_ms: int = 0


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True)
class UserFile:
    """The users of a service.

    A file that is there and names nobody lets nobody in; where there never was one, everybody may do all, unless it was
    ``named``: then it has to be there.
    """

    path: Path
    named: bool = False

    @staticmethod
    def of(settings: Settings) -> UserFile:
        named = settings.serve_users
        return UserFile(settings.data_dir / "serve-users.json") if named is None else UserFile(named, named=True)

    def read(self) -> tuple[User, ...] | None:
        """None: there is no file. Raises StackError where it was named and is not there, or cannot be understood."""
        users = self._found()
        if users is None and self.named:
            raise StackError(
                "there is no file of users where DOVETAIL_SERVE_USERS names one",
                where=str(self.path),
                fix="dovetail user add NAME --role admin makes it; or put it there, or unset DOVETAIL_SERVE_USERS",
            )
        return users

    def _found(self) -> tuple[User, ...] | None:
        try:
            members = json.loads(self.path.read_text())
            return tuple(User(**(user | {"role": Role(user["role"])})) for user in members["users"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OSError) as failure:
            raise StackError(
                f"the file of users cannot be read: {failure}",
                where=str(self.path),
                fix="put a backup in its place, or delete it, restart the service and add the users again",
            ) from failure

    def add(self, name: str, role: Role, now_ms: int) -> str:
        """Another user; their token, which is kept nowhere. Raises StackError for a name that is taken, or none."""
        if not _NAME.fullmatch(name):
            fix = "use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first"
            raise StackError(f"{name!r} cannot be the name of a user", where="dovetail user add", fix=fix)
        token = _PREFIX + secrets.token_urlsafe(_BYTES)

        def added(users: Sequence[User]) -> list[User]:
            if any(user.name == name for user in users):
                raise StackError(
                    f'there is a user "{name}" already', where=str(self.path), fix=f"dovetail user revoke {name} first"
                )
            return [*users, User(name, role, hashed(token), now_ms)]

        self._change(added)
        return token

    def revoke(self, name: str) -> Sequence[User]:
        """The users who are left; from now on the token of this one is refused. Raises StackError for no user."""

        def left(users: Sequence[User]) -> list[User]:
            names = [user.name for user in users]
            if name not in names:
                fix = suggestion(name, names, "dovetail user list shows all")
                raise StackError(f'there is no user "{name}"', where=str(self.path), fix=fix)
            return [user for user in users if user.name != name]

        return self._change(left)

    def _change(self, changed: Callable[[Sequence[User]], list[User]]) -> Sequence[User]:
        """A reader sees the users of before or of after; no other process changes them meanwhile."""
        with locked(self.path.with_suffix(".lock")):
            users = changed(self._found() or ())
            partial = self.path.with_suffix(".partial")
            partial.unlink(missing_ok=True)
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump({"users": [asdict(user) for user in users]}, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
        return users


def owner_of(token: str, users: Sequence[User]) -> User | None:
    """The user whose token it is. All are compared, each in the same time."""
    given = hashed(token)
    found = [user for user in users if hmac.compare_digest(user.token_sha256, given)]
    return found[0] if found else None
