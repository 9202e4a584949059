"""Completion, in the console and in editors: words that the grammar waits for, keywords, functions, names of relations,
and the columns of those that are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from dovetail.changelog.dead_letter import SUFFIX
from dovetail.changelog.schema import TIME
from dovetail.sql.catalog import Query, Relation
from dovetail.sql.functions.dialects import function_names
from dovetail.sql.query_settings import SETTINGS
from dovetail.sql.syntax.parse import STATEMENTS, awaited, readable
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream
from dovetail.sql.syntax.types import INSTANT, display, type_shown
from dovetail.sql.system_tables import DEAD_LETTERS

_KEYWORDS = """
ADD AFTER ALL ALTER ANALYZE AND ANTI AS ASOF BACKUP BEGINNING BETWEEN BY CASCADE CASE CAST CHANGELOG CHANGES CLOSE
COLUMN CREATE DATA DEAD DEFAULT DELETE DESCRIBE DICTIONARIES DICTIONARY DISTINCT DROP DRY ELSE EMIT END EXCEPT EXISTS
EXPLAIN EXTERNAL FALSE FOR FORMAT FROM FULL FUNCTION FUNCTIONS GROUP HAVING IF IMMUTABLE IN INCLUDE INDEX INDEXES
INNER INSERT INTERSECT INTERVAL INTO IS JOIN KEY LANGUAGE LATEST LAYOUT LEFT LETTERS LIFETIME LIKE LIMIT MATERIALIZED
MUTABLE NATURAL NOT NULL OF ON OR ORDER PAUSE PERIODIC PRIMARY PRINT PROCTIME() QUERIES RANDOM RELOAD REPLACE REPLAY
RESTORE RESUME RETURNS RIGHT ROLLBACK RUN SCHEMA SCHEMAS SELECT SEMI SET SETTINGS SHOW SINCE SOURCE STATE STREAM
STREAMS SYSTEM SYSTEM_TIME TABLE TERMINATE THEN TIMEOUT TO TOPIC TOPICS TRUE UNION UPDATE USING VALUES VIEW VIEWS WAIT
WATERMARK WHEN WHERE WHY WINDOW WITH changelog( table(
"""
KEYWORDS = tuple(_KEYWORDS.split())
_TAKEN = frozenset({*KEYWORDS, *STATEMENTS})
_DEAD_LETTER = SUFFIX.removeprefix(".")
_WORD = re.compile(r"(?<![\w.])[\w.]++$")
_NAMES = re.compile(r"\w+")


class KnownNames(Protocol):
    """What completion asks of a catalog."""

    def relations(self) -> Sequence[Relation]: ...

    def queries(self) -> Sequence[Query]: ...


class NameCompleter(Completer):
    """Asks the catalog at each completion, so that what was created a moment ago is offered.

    rules  whose functions are offered; None: those of both dialects
    """

    def __init__(self, catalog: KnownNames, rules: Rules | None = None) -> None:
        self._catalog = catalog
        self._rules = rules

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        found = _WORD.search(document.text_before_cursor)
        word = found.group() if found else ""
        if not readable(document.text_before_cursor):
            return
        relations = self._catalog.relations()
        alias, dot, prefix = word.rpartition(".")
        if dot:
            yield from _completions(prefix, columns_of(relations, document.text, alias), "column")
            if alias in {query.name for query in self._catalog.queries()}:
                yield from _completions(prefix, [_DEAD_LETTER], "dead letters")
            return
        yield from _completions(word, [relation.name for relation in relations], "name")
        yield from _completions(word, columns_of(relations, document.text), "column")
        yield from _completions(word, _awaited(document.text_before_cursor.removesuffix(word)), "")
        if word:
            yield from _completions(word, KEYWORDS, "")
            yield from _completions(word, [f"{name}(" for name in function_names(self._rules)], "function")
            yield from _completions(word, [setting.name for setting in SETTINGS], "setting")


def _awaited(text: str) -> list[str]:
    """Without the words that the grammar looks for to refuse them."""
    return [phrase for phrase in awaited(text) if all(word in _TAKEN for word in phrase.split())]


def columns_of(relations: Iterable[Relation], statement: str, alias: str = "") -> dict[str, str]:
    """The columns of the relations that ``statement`` names, with their types; of one alone, if ``alias`` is its name
    or alias there.
    """
    words = {word.casefold() for word in _NAMES.findall(statement)}
    folded = {relation.name.casefold() for relation in relations}
    if alias and alias.casefold() not in folded:
        pattern = rf"\b(\w++)\)?\s++(?:AS\s++)?{re.escape(alias)}\b"
        named = (found[1] for found in re.finditer(pattern, statement, re.IGNORECASE))
        alias = next((name for name in named if name.casefold() in {*folded, _DEAD_LETTER}), alias)
    names: dict[str, str] = {}
    for relation in relations:
        if relation.name.casefold() in words and alias.casefold() in ("", relation.name.casefold()):
            names.update(columns_of_relation(relation))
    if _DEAD_LETTER in words and alias in ("", _DEAD_LETTER):
        names.update({field.name: display(field.type, Rules.TIMEPLUS) for field in DEAD_LETTERS})
    return names


def columns_of_relation(relation: Relation) -> Mapping[str, str]:
    """Each column with its type; of a view as far as the catalog has them."""
    definition = relation.definition
    if isinstance(definition, CreateStream):
        typed = {column.name: type_shown(column, definition.rules) for column in definition.schema.readable}
        return {**typed, TIME: typed.get(TIME, display(INSTANT, definition.rules))}
    if isinstance(definition, CreateDictionary):
        typed = {column.name: display(column.type, Rules.TIMEPLUS) for column in definition.columns}
        return {**typed, TIME: display(INSTANT, Rules.TIMEPLUS)}
    if relation.written is None:
        return {}
    rules = relation.written.rules
    return {column.name: type_shown(column, rules) for column in relation.written.schema.columns}


def _completions(prefix: str, candidates: Iterable[str], meta: str) -> Iterator[Completion]:
    folded = prefix.casefold()
    for candidate in dict.fromkeys(candidates):
        if candidate.casefold().startswith(folded):
            text = candidate.lower() if candidate.isupper() and prefix.islower() else candidate
            yield Completion(text, start_position=-len(prefix), display_meta=meta)
