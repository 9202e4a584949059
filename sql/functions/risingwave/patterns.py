"""Regular expressions: what matches, what is put in its place, how often. They are the engine's (RE2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.arguments import written_text
from dovetail.sql.functions.registry import Row, Table, Unfit
from dovetail.sql.functions.risingwave.comparisons import pattern_tree
from dovetail.sql.functions.risingwave.signatures import argument
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import INT, TEXT, quoted, typed
from dovetail.sql.functions.typed import Typed

_LEFTMOST = "of alternatives the first that matches is taken, as RisingWave does, not the longest"
_MATCHES = pa.list_(pa.list_(TEXT))


def _groups(pattern: str) -> int:
    """How many groups of a pattern are counted."""
    return len(re.findall(_COUNTED, _plain(pattern)))


_COUNTED = r"\((?!\?)"


def _plain(pattern: str) -> str:
    """A pattern without what is escaped and what stands in brackets."""
    return re.sub(r"\\.|\[[^]]*+\]?", "", pattern)


def matched_part(given: Sequence[Typed]) -> Typed:
    """``substring(text, pattern)``: the first group, or the match."""
    text, pattern = argument(given[0], "text"), written_text(given[1], "its pattern")
    which = 1 if _groups(pattern) else 0
    template = f"CASE WHEN regexp_matches({{0}}, {{1}}, 's') THEN regexp_extract({{0}}, {{1}}, {which}, 's') END"
    return typed(text, template, [text.tree, pattern_tree(given[1])], TEXT)


def _strict(gives: pa.DataType) -> Callable[[Callable[[Sequence[Typed]], Typed]], Callable[[Sequence[Typed]], Typed]]:
    """A function that is NULL where NULL is written for one of its arguments."""

    def around(build: Callable[[Sequence[Typed]], Typed]) -> Callable[[Sequence[Typed]], Typed]:
        def strict(given: Sequence[Typed]) -> Typed:
            absent = next((value for value in given if value.is_null), None)
            return build(given) if absent is None else cast(absent, gives)

        return strict

    return around


def _flags(given: Sequence[Typed], position: int, allowed: str = "gi") -> str:
    """Those of the engine; there, a point matches a line's end only where it is asked to."""
    if len(given) <= position:
        return "s"
    flags = written_text(given[position], "its flags")
    for flag in flags:
        if flag not in allowed + "cs":
            raise Unfit(f"knows the flags {', '.join(allowed)}, not '{flag}'")
    # Of i and c the last one counts.
    case_flag = [flag for flag in flags if flag in "ic"][-1:]
    return "s" + "g" * ("g" in flags) + "i" * (case_flag == ["i"])


@_strict(TEXT)
def _replace(given: Sequence[Typed]) -> Typed:
    """The first match, all with the flag g; ``\\1`` is its first group, ``\\&`` the match."""
    if len(given) > 3 and given[3].is_integer:
        return _replace_from(given)
    if len(given) > 4:
        raise Unfit("takes a start behind the new text, and n")
    return _replaced(argument(given[0], "text"), given, _flags(given, 3))


def _replaced(text: Typed, given: Sequence[Typed], flags: str) -> Typed:
    by = given[2]
    if isinstance(by.literal, str):
        tree: exp.Expr = quoted(re.sub(r"\\(.)", lambda found: "\\0" if found[1] == "&" else found[0], by.literal))
    else:
        tree = argument(by, "text").tree
    trees = [text.tree, pattern_tree(given[1]), tree]
    return typed(text, f"regexp_replace({{0}}, {{1}}, {{2}}, '{flags}')", trees, TEXT)


def _replace_from(given: Sequence[Typed]) -> Typed:
    """From a position on the n-th match, 0 for all of them."""
    text, start = argument(given[0], "text"), argument(given[3], "int")
    number = given[4].literal if len(given) > 4 else 1
    if not isinstance(number, int) or number < 0:
        raise Unfit("takes n as a number that is written out: 0 for all, 1 for the first match")
    flags = _flags(given, 5).replace("g", "") + "g" * (number == 0)
    _expect_anywhere(given[1], start)
    rest = typed(text, "substring({0}, {1})", [text.tree, start.tree], TEXT)
    made = _replaced(rest, given, flags) if number < 2 else _nth_replaced(rest, given, number, flags)
    template = "CASE WHEN {1} > 0 THEN substring({0}, 1, {1} - 1) || {2} END"
    return typed(text, template, [text.tree, start.tree, made.tree], TEXT)


def _expect_anywhere(pattern: Typed, start: Typed) -> None:
    """Raises Unfit for a pattern that asks what stands before a match: from a start on, this is not seen."""
    if start.literal != 1 and re.search(r"\^|\\[AbBmMyY]", str(pattern.literal).replace("[^", "")):
        raise Unfit("begins at a start what has no ^ and no border of a word: neither looks before it")


def _nth_replaced(text: Typed, given: Sequence[Typed], number: int, flags: str) -> Typed:
    """What comes before the n-th match is a group of its own, so that groups of the pattern are two further."""
    written_text(given[1], "its pattern")
    by, pattern = written_text(given[2], "its new text"), str(pattern_tree(given[1]).this)
    if _groups(pattern) > _MOST_GROUPS:
        raise Unfit(f"takes a pattern of {_MOST_GROUPS} groups where n is above 1")
    uncounted = re.sub(rf"\\.|\[[^]]*+\]?|{_COUNTED}", lambda found: "(?:" if found[0] == "(" else found[0], pattern)
    whole = quoted(f"^((?:.*?(?:{uncounted})){{{number - 1}}}.*?)({pattern})")
    shown = quoted("\\1" + re.sub(r"\\(.)", lambda found: _moved(found[1]), by))
    template = (
        f"CASE WHEN len(regexp_extract_all({{0}}, {{1}}, 0, '{flags}')) >= {number} "
        f"THEN regexp_replace({{0}}, {{2}}, {{3}}, '{flags}') ELSE {{0}} END"
    )
    return typed(text, template, [text.tree, quoted(pattern), whole, shown], TEXT)


_MOST_GROUPS = 7


def _moved(sign: str) -> str:
    if sign == "&":
        return "\\2"
    return f"\\{int(sign) + 2}" if sign.isdigit() and sign != "0" else f"\\{sign}"


def _all_matches(given: Sequence[Typed], flags: str) -> Typed:
    """The groups of each match, or the match where there are none; a group that took no part is NULL."""
    text, pattern = argument(given[0], "text"), written_text(given[1], "its pattern")
    names = [f"g{number}" for number in range(1, _groups(pattern) + 1)]
    which = f"[{', '.join(quoted(name).sql() for name in names)}]" if names else "0"
    parts = ", ".join(f"struct_extract(m_, '{name}')" for name in names) or "m_"
    template = f"list_transform(regexp_extract_all({{0}}, {{1}}, {which}, '{flags}'), lambda m_: [{parts}])"
    return typed(text, template, [text.tree, pattern_tree(given[1])], _MATCHES)


@_strict(pa.list_(TEXT))
def _match(given: Sequence[Typed]) -> Typed:
    found = _all_matches(given, _flags(given, 2, "i"))
    return typed(found, "list_extract({0}, 1)", [found.tree], pa.list_(TEXT))


@_strict(_MATCHES)
def _matches(given: Sequence[Typed]) -> Typed:
    return _all_matches(given, _flags(given, 2).replace("g", ""))


def _count(given: Sequence[Typed]) -> Typed:
    text, flags = argument(given[0], "text"), _flags(given, 3, "i")
    if len(given) > 2:
        start = argument(given[2], "int")
        if "^" in str(given[1].literal).replace("[^", ""):
            raise Unfit("counts from a start what has no ^: its place is the beginning of the text")
        text = typed(text, "CASE WHEN {1} > 0 THEN substring({0}, {1}) END", [text.tree, start.tree], TEXT)
    return typed(
        text,
        f"CAST(len(regexp_extract_all({{0}}, {{1}}, 0, '{flags}')) AS INTEGER)",
        [text.tree, pattern_tree(given[1])],
        INT,
    )


def _split(given: Sequence[Typed]) -> Typed:
    text = argument(given[0], "text")
    return typed(text, "string_split_regex({0}, {1}, 's')", [text.tree, pattern_tree(given[1])], pa.list_(TEXT))


FUNCTIONS: Table = (
    Row("regexp_replace(text, pattern, by[, start[, n]][, flags])",
        "the first match replaced, all with the flag g; from a start on the n-th, all of them for 0", _replace,
        differs=_LEFTMOST),
    Row("regexp_match(text, pattern[, flags])", "the groups of the first match", _match),
    Row("regexp_matches_to_array(text, pattern[, flags])",
        "the groups of all matches, what regexp_matches gives row by row", _matches,
        differs="all matches without the flag g too, as RisingWave has it"),
    Row("regexp_count(text, pattern[, start[, flags]])", "how many matches there are", _count),
    Row("regexp_split_to_array(text, pattern)", "the parts between the matches", _split),
)  # fmt: skip
