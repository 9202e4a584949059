"""Passwords: given as they are, in an environment variable, or in a file; never in a message."""

from __future__ import annotations

import os
from pathlib import Path

from changelog.errors import SourceRefused
from dictionaries.definition.options import Parameters

FORMS = ("password", "password_env", "password_file")


def password_of(parameters: Parameters, where: str) -> str:
    """The password that ``parameters`` give or point to; '' without one. Read anew each time, as secrets rotate."""
    variable, path = parameters.get("password_env"), parameters.get("password_file")
    if variable is not None:
        found = os.environ.get(str(variable))
        if found is None:
            raise SourceRefused(
                f"the environment variable {variable} with the password is not set",
                where=where,
                fix=f"set {variable} for the workers and the session, or use PASSWORD FILE 'path'",
            )
        return found
    if path is not None:
        try:
            return Path(str(path)).read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise SourceRefused(
                f"the password cannot be read from {path}: {reason}",
                where=where,
                fix="put the file on the machines of the workers and of the session, readable for their user",
            ) from None
    return str(parameters.get("password", ""))
