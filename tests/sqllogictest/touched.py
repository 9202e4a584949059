"""Which relations a statement makes, drops, changes and names, by its words: of one that cannot be read as well."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.sqllogictest.outside import without_comments, without_texts

_NAME = r'((?:"[^"]+"|[\w.]+))'
_NOUN = r"(table|materialized\s+view|view|source|(?:unique\s+)?index|sink|function|aggregate)\s+"
_MADE = re.compile(rf"\s*create\s+(?:or\s+replace\s+)?{_NOUN}(?:if\s+not\s+exists\s+)?{_NAME}", re.IGNORECASE)
_DROPPED = re.compile(rf"\s*drop\s+{_NOUN}(?:if\s+exists\s+)?{_NAME}", re.IGNORECASE)
_CHANGED = re.compile(rf"\s*(?:insert\s+into|update|delete\s+from|alter\s+table)\s+{_NAME}", re.IGNORECASE)
_SINK_INTO = re.compile(rf"\s*create\s+sink\s+[\s\S]*?\binto\s+{_NAME}", re.IGNORECASE)
_WORD = re.compile(r'"([^"]+)"|([A-Za-z_][\w$]*)')
_QUERY = re.compile(r"\s*(select|with|values)\b|\s*\(", re.IGNORECASE)
_ORDER_BY = re.compile(r"order\s+by\b", re.IGNORECASE)
_LIMIT = re.compile(r"(limit|offset|fetch)\b", re.IGNORECASE)
_COMMENT_OR_TEXT = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"", re.DOTALL)


@dataclass(frozen=True)
class Touched:
    """The names in small letters; '' for none. ``names``: all words that may be names."""

    made: str
    dropped: str
    changed: str
    names: frozenset[str]
    makes_index: bool

    @staticmethod
    def by(sql: str) -> Touched:
        made, dropped = _MADE.match(sql), _DROPPED.match(sql)
        changed = _CHANGED.match(sql) or _SINK_INTO.match(sql)
        words = _WORD.findall(without_texts(without_comments(sql)))
        return Touched(
            made=_name(made[2]) if made else "",
            dropped=_name(dropped[2]) if dropped else "",
            changed=_name(changed[1]) if changed else "",
            names=frozenset((quoted or word).lower() for quoted, word in words),
            makes_index=made is not None and "index" in made[1].lower(),
        )


def _name(written: str) -> str:
    return written.strip('"').split(".")[-1].strip('"').lower()


def is_query(sql: str) -> bool:
    return bool(_QUERY.match(sql))


def is_ordered(sql: str) -> bool:
    """Whether the outermost query has ORDER BY."""
    return _order_by(sql) is not None


def without_order(sql: str) -> str:
    """The query without the ORDER BY of its outermost part, where no LIMIT hangs on that."""
    place = _order_by(sql)
    if place is None or any(_outermost(sql, _LIMIT, place)):
        return sql
    return sql[:place].rstrip()


def _order_by(sql: str) -> int | None:
    places = _outermost(sql, _ORDER_BY)
    return places[-1] if places else None


def _outermost(sql: str, words: re.Pattern[str], start: int = 0) -> list[int]:
    """Where ``words`` stand outside of brackets, comments and texts."""
    blanked = _COMMENT_OR_TEXT.sub(lambda found: " " * len(found.group()), sql)
    found, depth = list[int](), 0
    for place, sign in enumerate(blanked):
        depth += (sign in "([") - (sign in ")]")
        begins_a_word = place == 0 or not (blanked[place - 1].isalnum() or blanked[place - 1] == "_")
        if depth == 0 and place >= start and begins_a_word and words.match(blanked, place):
            found.append(place)
    return found
