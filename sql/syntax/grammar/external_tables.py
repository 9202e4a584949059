"""CREATE EXTERNAL TABLE: a table of another database, asked directly."""

from __future__ import annotations

from dovetail.changelog.errors import UnknownName
from dovetail.changelog.suggest import suggestion
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.columns import Elements, elements, primary_key
from dovetail.sql.syntax.grammar.settings import settings_clause
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Clause, CreateDictionary, Setting

TYPES = ("mysql", "clickhouse", "postgresql", "sqlite")
_PARAMETERS = {"database": "db"}
"""Settings that are called otherwise in the SOURCE of a dictionary."""


def create_external_table(cursor: Cursor, or_replace: bool) -> CreateDictionary:
    """What follows CREATE EXTERNAL TABLE: ``[IF NOT EXISTS] t [(columns)] [PRIMARY KEY k] SETTINGS name = x, ..``.

    ``address`` is ``host:port``; of SQLite, the file. The columns may be left out.
    """
    cursor.clause = "CREATE EXTERNAL TABLE"
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    start, name = cursor.offset, cursor.path("the name of a table")
    found = elements(cursor, Rules.TIMEPLUS) if cursor.at("(") else Elements(Rules.TIMEPLUS)
    if cursor.at("PRIMARY KEY"):
        primary_key(cursor, found)
    if found.columns:
        found.check_mentions(cursor)
    settings = dict(settings_clause(cursor))
    return CreateDictionary(
        name,
        tuple(found.columns),
        found.primary_key,
        _source(cursor, settings, name, start),
        Clause("direct"),
        external=True,
        if_not_exists=if_not_exists,
        or_replace=or_replace,
    )


def _source(cursor: Cursor, settings: dict[str, Setting], name: str, start: int) -> Clause:
    kind = str(settings.pop("type", "")).lower()
    if kind not in TYPES:
        what = f'there is no type "{kind}" of external table' if kind else "the external table has no type"
        fix = suggestion(kind, TYPES, f"SETTINGS type = 'mysql', address = 'host:3306', .. ({', '.join(TYPES)})")
        cursor.fail(what, fix=fix, kind=UnknownName, offset=start)
    address = str(settings.pop("address", ""))
    parameters: dict[str, Setting] = {}
    if kind == "sqlite" and address:
        parameters["path"] = address
    elif address:
        host, colon, port = address.rpartition(":")
        parameters["host"] = host if colon else address
        if colon:
            if not port.isdigit():
                cursor.fail(f"the address {address} has no port", fix="address = 'host:3306'", offset=start)
            parameters["port"] = int(port)
    parameters |= {_PARAMETERS.get(key, key): value for key, value in settings.items()}
    parameters.setdefault("table", name)
    return Clause(kind, parameters)
