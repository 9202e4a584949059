"""Passwords: given as they are, in an environment variable, or in a file; never in a message."""

from __future__ import annotations

import os
import re

from dovetail.changelog.errors import SourceRefused, SqlError
from dovetail.dictionaries.definition.options import Parameters
from dovetail.dictionaries.outside.outside import Outside

FORMS = ("password", "password_env", "password_file")
_VARIABLE = re.compile(r"DOVETAIL_SECRET_\w+", re.ASCII)
"""The variables that statements may name. Of the others some are passwords of the process itself."""


def check_secret(parameters: Parameters, where: str) -> None:
    """Raises SqlError for more than one password, and for a variable that no statement may read."""
    if len(parameters.keys() & set(FORMS)) > 1:
        raise SqlError("the password is given twice", where=where, fix="PASSWORD '..', ENV 'NAME' or FILE 'path', once")
    variable = parameters.get("password_env")
    if variable is not None and not _VARIABLE.fullmatch(str(variable)):
        name = re.sub(r"\W", "_", str(variable).upper(), flags=re.ASCII).removeprefix("DOVETAIL_").strip("_")
        raise SqlError(
            f"PASSWORD ENV reads variables DOVETAIL_SECRET_.. alone, not {variable}",
            where=where,
            fix=f"export DOVETAIL_SECRET_{name or 'SHOP'}=.. for the workers and the session, and name that",
        )


def password_of(parameters: Parameters, where: str, outside: Outside) -> str:
    """The password that ``parameters`` give or point to; '' without one. Read anew each time, as secrets rotate."""
    check_secret(parameters, where)
    variable, path = parameters.get("password_env"), parameters.get("password_file")
    if variable is not None:
        return _of_environment(str(variable), where)
    if path is not None:
        return _of_file(str(path), where, outside)
    return str(parameters.get("password", ""))


def _of_environment(variable: str, where: str) -> str:
    found = os.environ.get(variable)
    if found is None:
        raise SourceRefused(
            f"the environment variable {variable} with the password is not set",
            where=where,
            fix=f"set {variable} for the workers and the session, or use PASSWORD FILE 'path'",
        )
    return found


def _of_file(path: str, where: str, outside: Outside) -> str:
    try:
        return outside.files.read_secret(path, where).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SourceRefused(
            f"the password cannot be read from {path}: {reason}",
            where=where,
            fix="put the file on the machines of the workers and of the session, readable for their user",
        ) from None
