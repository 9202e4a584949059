"""IF NOT EXISTS of a name that is there: what has it stays, and where that is another thing the answer says so."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dovetail.services.session.result import Done
from dovetail.sql.catalog import Relation
from dovetail.sql.syntax.statements import CreateDictionary, CreateFunction

_FORM = ("text", "if_not_exists", "or_replace")
"""How a definition is written, and not what it is."""


def exists_already(existing: Relation, difference: str) -> Done:
    """``difference``: in what it is another thing than was asked for; '': in nothing."""
    return Done(f"{existing.noun} {existing.name} exists already{difference}")


def defined_otherwise(existing: Relation) -> str:
    return f", with another definition, which stays: SHOW CREATE {existing.name}"


def difference(existing: Relation, wanted: CreateDictionary | CreateFunction) -> str:
    """Of what is the same where all that it declares is."""
    there = existing.definition
    if type(there) is not type(wanted):
        return ""
    return "" if _declared(there, wanted) == _declared(wanted, wanted) else defined_otherwise(existing)


def _declared(one: Any, wanted: CreateDictionary | CreateFunction) -> list[object]:
    """Columns that ``wanted`` does not name are those of the table at the source."""
    return [
        getattr(one, field.name)
        for field in fields(wanted)
        if field.name not in _FORM and (field.name != "columns" or wanted.columns)  # type: ignore[union-attr]
    ]
