"""SETTINGS name = value, .. and WITH (name = value, ..)."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.cursor import Cursor, is_whole
from dovetail.sql.syntax.statements import Setting, Settings

NO_SECRETS = (
    "PASSWORD ENV 'NAME' or PASSWORD FILE 'path' where a database is asked; of Kafka leave it out, its password is in "
    "DOVETAIL_KAFKA_SASL_PASSWORD"
)
_AFTER_A_COLUMN = (
    *("FROM", "AS", "AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "ASC", "DESC"),
    *("EMIT", "GROUP", "HAVING", "LIMIT", "WHERE", "JOIN", "SETTINGS"),
)


def at_settings(cursor: Cursor) -> bool:
    """Whether a SETTINGS clause begins here: SETTINGS and a name. A column may be called settings as well."""
    following = cursor.word(1)
    if cursor.at_operand:
        return False
    if cursor.at("SETTINGS ("):
        return True
    return cursor.at("SETTINGS") and following.replace("_", "").isalnum() and following not in _AFTER_A_COLUMN


def settings_clause(cursor: Cursor) -> Settings:
    cursor.expect("SETTINGS")
    cursor.clause = "SETTINGS"
    wrapped = bool(cursor.accept("("))
    settings = assignments(cursor)
    if wrapped:
        cursor.expect(")")
    return settings


def with_clause(cursor: Cursor) -> Settings:
    cursor.expect("WITH")
    cursor.clause = "WITH"
    cursor.expect("(")
    settings = {} if cursor.at(")") else assignments(cursor)
    cursor.expect(")")
    return settings


def assignments(cursor: Cursor) -> dict[str, Setting]:
    """``name = value, ..``, each name once."""
    settings: dict[str, Setting] = {}
    for offset, name, value in cursor.listed(lambda: assignment(cursor)):
        if name in settings:
            cursor.fail(f"the setting {name} is given twice", offset=offset)
        settings[name] = value
    return settings


def assignment(cursor: Cursor) -> tuple[int, str, Setting]:
    """Where it begins, name and value; the name may be a text, as Flink has it."""
    offset = cursor.offset
    name = (cursor.string() if cursor.at_string else cursor.dotted()).lower()
    cursor.expect("=", fix=f"{name} = <value>")
    return (offset, *named_value(cursor, name))


def named_value(cursor: Cursor, name: str) -> tuple[str, Setting]:
    """What follows a name. Of a password it may be a place: ``ENV 'NAME'`` is called password_env, ``FILE 'path'``
    password_file.
    """
    if name == "password" and (place := cursor.accept("ENV", "FILE")):
        return f"{name}_{place.lower()}", cursor.string()
    first = cursor.index
    value = setting_value(cursor)
    cursor.settings.append(cursor.span(name, first))
    return name, value


def setting_value(cursor: Cursor) -> Setting:
    """A string, a number, true or false; a bare word is a string."""
    if cursor.at_string:
        return cursor.string()
    if cursor.at("SECRET") and cursor.word(1):
        cursor.fail("the catalog keeps no secrets by name", fix=NO_SECRETS, kind=Unsupported)
    if cursor.accept("TRUE"):
        return True
    if cursor.accept("FALSE"):
        return False
    sign = -1 if cursor.accept("-") else 1
    token = cursor.advance()
    if token.token_type == TokenType.NUMBER:
        return sign * (int(token.text) if is_whole(token) else float(token.text))
    if not token.text[:1].isalnum():
        cursor.fail(f"expected a value, found {cursor.written(token)}", offset=token.start)
    return ("-" if sign < 0 else "") + str(token.text)
