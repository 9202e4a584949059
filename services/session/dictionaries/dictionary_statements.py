"""Dictionaries and external tables: created, refreshed, dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from dovetail.changelog.errors import InternalError, ServiceUnavailable, SqlError, UnknownName
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.schema import Column
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import articled, counted, type_words
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.open import open_layout
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.commands.command_codec import Refresh
from dovetail.services.commands.commander import CommandAnswers
from dovetail.services.session.context import Context
from dovetail.services.session.dictionaries.passwords import is_only_in_workers
from dovetail.services.session.dictionaries.sources import (
    SHARED_LAYOUTS,
    check_source,
    columns_of,
    resources,
    used_streams,
)
from dovetail.services.session.if_not_exists import difference, exists_already
from dovetail.services.session.result import Done
from dovetail.sql.catalog import What
from dovetail.sql.syntax.parse import as_shown, parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateDictionary, System
from dovetail.sql.syntax.types import display

_EXTERNAL_NAME = re.compile(
    r"""\bEXTERNAL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:`[^`]+`|"[^"]+"|[\w.]+)""", re.IGNORECASE
)


def create_dictionary(context: Context, statement: CreateDictionary) -> Done:
    """The source is asked once, so that a wrong password or a missing table is said here and not by a worker.

    It is not where only the workers have the password, as on a server that others give statements to.
    """
    existing = context.catalog.find(statement.name)
    if existing is not None and statement.if_not_exists:
        return exists_already(existing, difference(existing, statement))
    made = _with_columns(context, statement)
    definition = definition_of(made)
    note = ""
    if is_only_in_workers(context, definition):
        note = "; its source was not asked: only the worker has the variable of its password"
    else:
        check_source(context, definition)
    context.catalog.create(made, now_ms=context.now_ms, uses=used_streams(definition))
    if existing is not None:
        # What is cached was read from another source, or has other columns.
        refresh(context, statement.name)
    return Done(f"created {'external table' if statement.external else 'dictionary'} {statement.name}{note}")


def _with_columns(context: Context, statement: CreateDictionary) -> CreateDictionary:
    """An external table that names no columns has those of the table itself, from now on: the catalog keeps them."""
    if statement.columns:
        return statement
    found = columns_of(context, definition_of(statement))
    listed = ", ".join(f"`{column.name}` {display(column.type, Rules.TIMEPLUS)}" for column in found)
    head = _EXTERNAL_NAME.search(statement.text)
    if head is None:
        raise InternalError("no name was found in the statement", where=as_shown(statement.text))
    made = parse_one(f"{statement.text[: head.end()]} ({listed}){statement.text[head.end() :]}")
    assert isinstance(made, CreateDictionary)
    return made


def dictionary(context: Context, name: str) -> CreateDictionary:
    """The statement that made it. Raises UnknownName or SqlError where there is no dictionary of this name."""
    relation = context.catalog.named(name)
    if relation is None:
        known = [one.name for one in context.catalog.relations(What.DICTIONARY)]
        raise UnknownName(f'there is no dictionary "{name}"', fix=suggestion(name, known))
    if not isinstance(relation.definition, CreateDictionary):
        raise SqlError(f'"{name}" is {articled(relation.noun)}, not a dictionary', fix="SHOW DICTIONARIES lists them")
    return relation.definition


def reload(context: Context, statement: System) -> Done:
    """SYSTEM RELOAD DICTIONARY d, SYSTEM RELOAD DICTIONARIES."""
    if statement.name is not None:
        names = [dictionary(context, statement.name).name]
    else:
        names = [relation.name for relation in context.catalog.relations(What.DICTIONARY)]
    workers = [len(refresh(context, name).given) for name in names]
    if not names:
        return Done("there is no dictionary")
    return Done(f"reloaded {', '.join(names)}; {counted(max(workers), 'worker')} answered")


def refresh(
    context: Context, name: str, keys: Sequence[Any] | None = None, prefix: str | None = None
) -> CommandAnswers:
    """Every worker forgets some keys, those that begin with ``prefix``, or all; the next lookup asks the source.

    Raises ServiceUnavailable where a worker did not answer or could not do it; it is safe to run again.
    """
    definition = definition_of(dictionary(context, name))
    command = Refresh(name, keys, prefix)
    answers = context.commander.give(command, context.live_workers)
    _forget_shared(context, definition, command)
    if answers.silent or answers.failed:
        raise _unfinished(context, name, answers)
    return answers


def _forget_shared(context: Context, definition: Definition, command: Refresh) -> None:
    """What Redis holds goes even if no worker runs: one that starts later finds nothing outdated."""
    shared = resources(context)
    if definition.layout.kind in SHARED_LAYOUTS and shared.redis_url is not None:
        with closing(open_layout(definition, shared)) as layout:
            layout.invalidate(command.keys, command.prefix, token=command.id)


def _unfinished(context: Context, name: str, answers: CommandAnswers) -> ServiceUnavailable:
    said = [f"{answer.worker}: {answer.outcome.error}" for answer in answers.failed]
    if answers.silent:
        said.append(f"no answer within {context.settings.command_timeout_s:g} s: {', '.join(answers.silent)}")
    did = counted(len(answers.given) - len(answers.failed), "worker")
    return ServiceUnavailable(
        f'"{name}" was not refreshed by all workers; {did} did it',
        where="; ".join(said),
        fix="run it again, which is safe; dovetail status and the log of the worker say what is wrong with it",
    )


def keys_of(definition: Definition, texts: Sequence[str]) -> list[Any]:
    """Keys as a person writes them: the value itself, or a JSON array for a key of several columns."""
    return [_key(definition, text) for text in texts]


def _key(definition: Definition, text: str) -> Any:
    columns = [next(c for c in definition.columns if c.name == name) for name in definition.key]
    if len(columns) == 1:
        return _part(columns[0], text)
    try:
        parts = json.loads(text)
    except json.JSONDecodeError:
        parts = None
    if not isinstance(parts, list) or len(parts) != len(columns):
        raise SqlError(
            f"{text!r} is no key of {definition.name}",
            where="--key",
            fix=f"give a JSON array of {', '.join(definition.key)}",
        )
    return tuple(_part(column, str(part)) for column, part in zip(columns, parts, strict=True))


def _part(column: Column, text: str) -> Any:
    try:
        return decimal_text.cast(pa.array([text]), column.type)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise SqlError(
            f"{text!r} is no value of {column.name}, which is {type_words(column.type)}", where="--key"
        ) from None
