"""Who asks, by the token of the request; a token that is revoked ends what it has begun."""

from __future__ import annotations

import logging
from http import HTTPStatus

from dovetail.services.role import Role
from dovetail.services.serve.access.users import User, UserFile, owner_of
from dovetail.services.serve.refusals import RequestRefused

_LOG = logging.getLogger("dovetail.serve")
ANONYMOUS_ADMIN = User("everybody", Role.ADMIN)
"""Who asks where no user was ever added."""
_NEW_ADMIN = "dovetail user add NAME --role admin"
_TOKEN = "dovetail user add NAME --role reader"
_BACK = f"put it back, or make another one: {_NEW_ADMIN}"
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="dovetail"'}


class Authenticator:
    """Knows the users as their file has them at the moment: it is read again whenever it has changed."""

    def __init__(self, file: UserFile) -> None:
        self._file = file
        self._seen: tuple[int, int, int] | None = None
        self._users: tuple[User, ...] | None = None
        self._gone = False

    @property
    def is_open(self) -> bool:
        """Whether no user was ever added, and no file of users is named."""
        return self._current() is None

    def admitted(self, authorization: str | None) -> User:
        """The user behind the header ``Authorization``. Raises RequestRefused, 401; StackError for a damaged file."""
        users = self._current()
        if users is None:
            return ANONYMOUS_ADMIN
        if not users:
            raise _refused("no user remains, so no one can sign in", f"make one: {_NEW_ADMIN}")
        if authorization is None:
            fix = f'add the header "Authorization: Bearer <token>"; {_TOKEN} prints a token'
            raise _refused("the request names no user", fix)
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise _refused("the request has no bearer token", 'the header is written "Authorization: Bearer <token>"')
        user = owner_of(token.strip(), users)
        if user is None:
            raise _refused(
                "the token is of no user: it was revoked, or never given",
                f"ask an admin for another one: {_TOKEN}",
            )
        return user

    def expect_still(self, user: User) -> None:
        """Raises RequestRefused where the user, admitted before, would not be now."""
        users = self._current()
        if users is None if user is ANONYMOUS_ADMIN else user in (users or ()):
            return
        raise _refused("the token was revoked", f"ask an admin for another one: {_TOKEN}")

    def _current(self) -> tuple[User, ...] | None:
        """None: there never was a file, and none is named. Raises RequestRefused while one is away that was or is."""
        try:
            status = self._file.path.stat()
        except OSError as failure:
            if isinstance(failure, FileNotFoundError) and self._seen is None and not self._file.named:
                return None
            self._say_gone(failure)
            raise _refused("the file of users is missing, and no one can sign in without it", _BACK) from failure
        seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        if seen != self._seen:
            self._users, self._seen = self._file.read() or (), seen
        self._gone = False
        return self._users

    def _say_gone(self, failure: OSError) -> None:
        """Once, until it is back."""
        if not self._gone:
            _LOG.error("no one can sign in: the file of users is missing: %s; %s", failure, _BACK)
        self._gone = True


def _refused(what: str, fix: str) -> RequestRefused:
    return RequestRefused(what, where="Authorization", fix=fix, status=HTTPStatus.UNAUTHORIZED, headers=_CHALLENGE)


def expect_role(user: User, needed: Role, what: str) -> None:
    """Raises RequestRefused, 403."""
    if not user.role.includes(needed):
        raise RequestRefused(
            f'{what} needs the role {needed}, and the user "{user.name}" has the role {user.role}',
            where=f"role {user.role}",
            fix=f"ask an admin for a token of that role: dovetail user add NAME --role {needed}",
            status=HTTPStatus.FORBIDDEN,
        )
