"""Completion for the console: keywords, functions, names of relations, and the columns of those that are named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from dovetail.changelog.dead_letter import SUFFIX
from dovetail.changelog.schema import TIME
from dovetail.sql.catalog import Catalog, Relation
from dovetail.sql.functions.dialects import function_names
from dovetail.sql.query_settings import SETTINGS
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream
from dovetail.sql.system_tables import DEAD_LETTERS

_KEYWORDS = """
ADD ALL ALTER ANALYZE AND AS ASOF BACKUP BETWEEN BY CASCADE CASE CAST CHANGELOG COLUMN CREATE DATA DEAD DELETE
DESCRIBE DICTIONARIES DICTIONARY DISTINCT DROP DRY ELSE EMIT END EXCEPT EXISTS EXPLAIN EXTERNAL FALSE FOR FORMAT FROM
FULL FUNCTION FUNCTIONS GROUP IF IMMUTABLE IN INCLUDE INDEX INNER INSERT INTERSECT INTERVAL INTO IS JOIN KEY LANGUAGE
LAYOUT LEFT LETTERS LIFETIME LIKE LIMIT MATERIALIZED MUTABLE NATURAL NOT NULL OF ON OR ORDER PAUSE PRIMARY PRINT
PROCTIME() QUERIES RELOAD REPLACE REPLAY RESTORE RESUME RETURNS RIGHT RUN SELECT SET SETTINGS SHOW SOURCE STATE STREAM
STREAMS SYSTEM SYSTEM_TIME TABLE TERMINATE THEN TIMEOUT TO TOPIC TOPICS TRUE UNION UPDATE USING VALUES VIEW VIEWS WAIT
WATERMARK WHEN WHERE WHY WITH changelog( table(
"""
KEYWORDS = tuple(_KEYWORDS.split())
_DEAD_LETTER = SUFFIX.removeprefix(".")
_WORD = re.compile(r"(?<![\w.])[\w.]++$")
_NAMES = re.compile(r"\w+")


class NameCompleter(Completer):
    """Asks the catalog at each completion, so that what was created a moment ago is offered."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        found = _WORD.search(document.text_before_cursor)
        word = found.group() if found else ""
        relations = self._catalog.relations()
        alias, dot, prefix = word.rpartition(".")
        if dot:
            yield from _completions(prefix, columns_of(relations, document.text, alias), "column")
            if alias in {query.name for query in self._catalog.queries()}:
                yield from _completions(prefix, [_DEAD_LETTER], "dead letters")
            return
        yield from _completions(word, [relation.name for relation in relations], "name")
        yield from _completions(word, columns_of(relations, document.text), "column")
        if word:
            yield from _completions(word, KEYWORDS, "")
            yield from _completions(word, [f"{name}(" for name in function_names()], "function")
            yield from _completions(word, [setting.name for setting in SETTINGS], "setting")


def columns_of(relations: Iterable[Relation], statement: str, alias: str = "") -> list[str]:
    """The columns of the relations that ``statement`` names; of one alone, if ``alias`` is its name or alias there."""
    words = _NAMES.findall(statement)
    if alias and alias not in {relation.name for relation in relations}:
        match = re.search(rf"\b(\w++)\)?\s++(?:AS\s++)?{re.escape(alias)}\b", statement, re.IGNORECASE)
        alias = match.group(1) if match else alias
    names: dict[str, None] = {}
    for relation in relations:
        definition = relation.definition if relation.name in words and alias in ("", relation.name) else None
        if isinstance(definition, CreateStream | CreateDictionary):
            names.update(dict.fromkeys([*(column.name for column in definition.columns), TIME]))
    if _DEAD_LETTER in words and alias in ("", _DEAD_LETTER):
        names.update(dict.fromkeys(DEAD_LETTERS.names))
    return list(names)


def _completions(prefix: str, candidates: Iterable[str], meta: str) -> Iterator[Completion]:
    folded = prefix.casefold()
    for candidate in dict.fromkeys(candidates):
        if candidate.casefold().startswith(folded):
            text = candidate.lower() if candidate.isupper() and prefix.islower() else candidate
            yield Completion(text, start_position=-len(prefix), display_meta=meta)
