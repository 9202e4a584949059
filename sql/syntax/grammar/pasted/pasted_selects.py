"""What only the queries of others have: windows and WITHIN of ksqlDB, table functions and MATCH_RECOGNIZE of Flink.

Where something means the same as here it is read (``same_windows``). The rest is refused with the whole statement as it
is written here: each piece that differs is an ``Edit`` of its text, and all of them are made together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token

from changelog.errors import Unsupported
from sql.syntax.cursor import Cursor, is_name
from sql.syntax.dialect import AGGREGATES, DURATION
from sql.syntax.grammar.pasted.filled_forms import noted
from sql.syntax.grammar.pasted.foreign_names import with_own_names
from sql.syntax.grammar.pasted.text_edits import Edit, applied

_JOINING = ("LEFT", "RIGHT", "FULL", "INNER", "OUTER", "JOIN", "CROSS")
_NEXT = (
    *_JOINING,
    "WHERE",
    "GROUP BY",
    "HAVING",
    "ORDER BY",
    "LIMIT",
    "EMIT",
    "WINDOW",
    "PARTITION BY",
    "SETTINGS",
    ")",
)
"""What may follow a list of keys or a condition of a join."""
_ARGUMENTS = ("DATA", "TIMECOL", "SIZE", "SLIDE", "STEP", "GAP", "OFFSET")
"""What Flink calls the arguments of windows, in the order in which they stand without these names."""
_STEPS = {"s": "1s", "m": "10s", "h": "1m", "d": "1h", "w": "1d"}
"""How often a window of so many of a unit begins in the place of EMIT LAST, which says nothing of that."""
_ENDS = ", window_end"
_LATE = "SETTINGS watermark_delay says how late rows may be"


@dataclass(frozen=True)
class Foreign:
    """A piece of another system: ``what`` it is, the token where it begins, its edits, what is to be known of them."""

    what: str
    at: Token
    edits: tuple[Edit, ...]
    note: str = ""


def refuse_foreign(cursor: Cursor) -> None:
    """Raises Unsupported for a query that has pieces of other systems, with the statement that runs in its place."""
    tokens = without_names(cursor.tokens)
    found = _foreign(cursor.script, tokens, cursor.index)
    if found:
        form = noted(*_mended(cursor.script, tokens, found))
        cursor.fail(found[0].what, fix=form, kind=Unsupported, offset=found[0].at.start)


def in_own_words(script: str, tokens: Sequence[Token]) -> tuple[str, str]:
    """A query on one line without what only others have, and what is to be known of that."""
    plain = without_names(tokens)
    return _mended(script, plain, _foreign(script, plain, 0))


def _foreign(script: str, tokens: Sequence[Token], start: int) -> list[Foreign]:
    return [foreign for at in range(start, len(tokens)) if (foreign := _at(script, tokens, at))]


def _mended(script: str, tokens: Sequence[Token], found: Sequence[Foreign]) -> tuple[str, str]:
    form = applied(script, tokens, [edit for foreign in found for edit in foreign.edits])
    note = "; ".join(dict.fromkeys(foreign.note for foreign in found if foreign.note))
    return with_own_names(form) or form, note


def same_windows(tokens: Sequence[Token]) -> list[Token]:
    """``TUMBLE(TABLE t, DESCRIPTOR(c), ..)`` and HOP as ``TUMBLE(t, c, ..)``, within TABLE(..) or not: the tokens
    that say nothing are left out, and the others stay where they are.
    """
    tokens = without_names(tokens)
    left_out: set[int] = set()
    singular: dict[int, Token] = {}
    for at in range(len(tokens)):
        if _words(tokens, at, 3) not in (["TUMBLE", "(", "TABLE"], ["HOP", "(", "TABLE"]):
            continue
        end = _closing(tokens, at + 1)
        column = next((place for place in range(at, end) if _word(tokens, place) == "DESCRIPTOR"), None)
        if column is None or _word(tokens, column + 3) != ")":
            continue
        left_out |= {at + 2, column, column + 1, column + 3}
        if at >= 2 and _words(tokens, at - 2, 2) == ["TABLE", "("]:
            left_out |= {at - 2, at - 1, end + 1}
        singular |= {place: one for place in range(column, end) if (one := _singular(tokens, place))}
    return [singular.get(place, token) for place, token in enumerate(tokens) if place not in left_out]


def without_names(tokens: Sequence[Token]) -> list[Token]:
    """``TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(c), SIZE => ..)`` without the names of its arguments."""
    named = {place for place in range(len(tokens)) if _word(tokens, place) in _ARGUMENTS and _arrow(tokens, place + 1)}
    return [token for place, token in enumerate(tokens) if not named & {place, place - 1}]


def _arrow(tokens: Sequence[Token], at: int) -> bool:
    return _word(tokens, at) == "=>"


def _singular(tokens: Sequence[Token], at: int) -> Token | None:
    """``MINUTES`` behind ``INTERVAL '10'`` as MINUTE, which both dialects read."""
    token, word = tokens[at], _word(tokens, at)
    if _word(tokens, at - 2) != "INTERVAL" or not word.endswith("S"):
        return None
    return Token(token.token_type, word[:-1], token.line, token.col, token.start, token.end, token.comments)


def _at(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """The piece that begins at a token, if one does."""
    for beginning, read in _PIECES:
        found = read(script, tokens, at) if _words(tokens, at, len(beginning)) == list(beginning) else None
        if found is not None:
            return found
    return None


def _window(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``FROM s [x] WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 5 MINUTES)``, HOPPING (.., ADVANCE BY ..), SESSION."""
    end = _closing(tokens, at + 2)
    first = _source(tokens, at)
    lengths = {_of(script, part): _length(script, part) for part in _parts(tokens[at + 3 : end])}
    kind = _word(tokens, at + 1)
    size = lengths.get("SIZE") or lengths.get("", "")
    if first is None or not size:
        return None
    step = f"{lengths.get('ADVANCE', size)}, " if kind == "HOPPING" else ""
    function = {"TUMBLING": "tumble", "HOPPING": "hop", "SESSION": "session"}[kind]
    named, alias = first
    source = _text(script, [named])
    alias_text = "" if alias is not named else f" AS {source}"
    edits: list[Edit] = [
        Edit(named.start, named.end + 1, f"{function}({source}, {step}{size}){alias_text}"),
        Edit(tokens[at].start, tokens[end].end + 1, ""),
        *_grouped(tokens, at),
    ]
    grace, note = lengths.get("GRACE"), ""
    final = next((place for place in range(end, len(tokens)) if _words(tokens, place, 2) == ["EMIT", "FINAL"]), None)
    if grace and final is not None:
        word = tokens[final + 1]
        edits.append(Edit(word.start, word.end + 1, f"AFTER WINDOW CLOSE WITH DELAY {grace}"))
    elif grace:
        note = _LATE
    return Foreign(f"WINDOW {kind} is of ksqlDB: windows are of a stream in FROM", tokens[at], tuple(edits), note)


def _grouped(tokens: Sequence[Token], at: int) -> Iterator[Edit]:
    """The windows are keys of the groups."""
    group = next((place for place in range(at, len(tokens)) if _word(tokens, place) == "GROUP BY"), None)
    if group is not None:
        last = tokens[_end(tokens, group + 1) - 1]
        yield Edit(last.end + 1, last.end + 1, ", window_start, window_end")


def _within(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``a JOIN b WITHIN 1 HOUR [GRACE PERIOD ..] ON ..``, or ``WITHIN (1 HOUR, 2 HOURS)``: before and after."""
    on = next((place for place in range(at, len(tokens)) if _word(tokens, place) == "ON"), None)
    join = next((place for place in range(at, -1, -1) if _word(tokens, place) == "JOIN"), None)
    if on is None or join is None or join + 1 >= at:
        return None
    widths = tokens[at + 1 : on]
    bracketed = _word(tokens, at + 1) == "("
    given = _parts(tokens[at + 2 : _closing(tokens, at + 1)]) if bracketed else [widths[:2]]
    before, after = _length(script, given[0]), _length(script, given[-1])
    first = _source(tokens, join)
    if not before or not after or first is None or not is_name(tokens[at - 1]):
        return None
    one, other = f"{_text(script, [first[1]])}._tp_time", f"{_text(script, [tokens[at - 1]])}._tp_time"
    near = f" AND {other} BETWEEN {one} - {before} AND {one} + {after}"
    last = tokens[_end(tokens, on + 1) - 1]
    edits = (Edit(tokens[at].start, tokens[on].start, ""), Edit(last.end + 1, last.end + 1, near))
    grace = any(token.text.upper() == "GRACE" for token in widths)
    note = _LATE if grace else ""
    return Foreign("WITHIN is of ksqlDB: how near rows are is a condition", tokens[at], edits, note)


def _table_function(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``TABLE(CUMULATE(TABLE t, DESCRIPTOR(c), step, size))``, ``TABLE(SESSION(TABLE t PARTITION BY k, ..))``."""
    end = _closing(tokens, at + 1)
    kind = _word(tokens, at + 2)
    parts = _parts(tokens[at + 4 : end - 1])
    if len(parts) < 3 or _word(parts[0], 0) != "TABLE" or _word(parts[1], 0) != "DESCRIPTOR":
        return None
    table, time, length = parts[0][1], parts[1][2:-1], _text(script, parts[-1])
    function = "TUMBLE" if kind == "CUMULATE" else "SESSION"
    made = f"{function}({_text(script, [table])}, {_text(script, time)}, {length})"
    note = (
        "a window of the whole size, whose rows are updated as it fills"
        if kind == "CUMULATE"
        else "sessions are of the other keys of GROUP BY"
    )
    what = f"{kind} over TABLE and DESCRIPTOR is of Flink"
    return Foreign(what, tokens[at], (Edit(tokens[at].start, tokens[end].end + 1, made),), note)


def _group_window(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``GROUP BY .., TUMBLE(t, INTERVAL '1' HOUR)``, with TUMBLE_START(..) and the like elsewhere."""
    end = _closing(tokens, at + 1)
    group = next((place for place in range(at, -1, -1) if _word(tokens, place) in ("GROUP BY", "FROM", "SELECT")), 0)
    first = _source(tokens, at)
    parts = _parts(tokens[at + 2 : end])
    if _word(tokens, group) != "GROUP BY" or first is None or len(parts) < 2 or _word(parts[1], 0) != "INTERVAL":
        return None
    named, alias = first
    arguments = ", ".join(_text(script, part) for part in parts)
    source = _text(script, [named])
    kind = _word(tokens, at)
    alias_text = f" AS {source}" if alias is named else ""
    edits = [
        Edit(named.start, named.end + 1, f"{kind}({source}, {arguments}){alias_text}"),
        Edit(tokens[at].start, tokens[end].end + 1, "window_start, window_end"),
    ]
    for place in range(len(tokens)):
        for suffix, column in (("_START", "window_start"), ("_END", "window_end")):
            if _words(tokens, place, 2) == [f"{kind}{suffix}", "("]:
                closing = _closing(tokens, place + 1)
                edits.append(Edit(tokens[place].start, tokens[closing].end + 1, column))
    return Foreign(f"{kind} among the keys is of Flink: windows are of a table in FROM", tokens[at], tuple(edits))


def _pattern(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY t ..)``: no translation; rows beside those before them."""
    first = _source(tokens, at)
    order = next((place for place in range(at, len(tokens)) if _word(tokens, place) == "ORDER BY"), None)
    end = _closing(tokens, at + 1)
    if first is None or order is None or order > end:
        return None
    select = next(place for place in range(at, -1, -1) if _word(tokens, place) == "SELECT")
    by = tokens[at + 2 : order + 2]
    time = _text(script, [tokens[order + 1]])
    lag = f"SELECT *, lag({time}) OVER ({_text(script, by)}) AS before FROM {_text(script, [first[0]])}"
    edit = Edit(tokens[select].start, tokens[_end(tokens, end + 1) - 1].end + 1, lag)
    what = "patterns of rows, MATCH_RECOGNIZE, are not supported"
    return Foreign(what, tokens[at], (edit,), "each row beside the one before it, for conditions around this")


def _dedup(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``dedup(s, k, ..[, 1m][, limit])`` in FROM."""
    end = _closing(tokens, at + 1)
    given = [_text(script, part) for part in _parts(tokens[at + 2 : end])]
    keys = given[1:]
    named = [key for key in keys if not key[:1].isdigit()]
    if _word(tokens, at - 1) not in ("FROM", "JOIN") or not named:
        return None
    source = given[0]
    alias = "" if _word(tokens, end + 1) not in ("", *_NEXT) else f" AS {source}"
    made = f"(SELECT * FROM {source} LIMIT 1 BY {', '.join(named)}){alias}"
    note = "the first row of each key, however long ago" if len(named) < len(keys) else ""
    edit = Edit(tokens[at].start, tokens[end].end + 1, made)
    return Foreign("dedup() in FROM is not supported", tokens[at], (edit,), note)


def _last(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``EMIT [PERIODIC 5s AND] LAST 1h [ON PROCTIME]``: of a query without groups, where it begins; of one with them,
    windows that begin one after the other.
    """
    last = next((place for place in range(at, len(tokens)) if _word(tokens, place) == "LAST"), len(tokens))
    length = DURATION.fullmatch(_as_written(tokens, last + 1))
    if length is None:
        return None
    over = last + 4 if _words(tokens, last + 2, 2) == ["ON", "PROCTIME"] else last + 2
    start, end = tokens[at].start, tokens[over - 1].end + 1
    what = "EMIT LAST is of Timeplus:"
    if not any(_groups(tokens, place) for place in range(at)):
        edit = Edit(start, end, f"SETTINGS seek_to = '-{length[0]}'")
        return Foreign(f"{what} where a query begins is a setting", tokens[at], (edit,))
    step = _as_written(tokens, at + 2) if _word(tokens, at + 1) == "PERIODIC" else _STEPS.get(length[2], length[0])
    first = _source(tokens, at)
    if first is None or DURATION.fullmatch(step) is None:
        return None
    named, alias = first
    source = _text(script, [named])
    group = next((place for place in range(at) if _word(tokens, place) == "GROUP BY"), None)
    keys = at if group is None else _end(tokens, group + 1)
    select = next(tokens[place] for place in range(at, -1, -1) if _word(tokens, place) == "SELECT")
    edits = (
        Edit(select.end + 1, select.end + 1, " window_end,"),
        Edit(named.start, named.end + 1, f"hop({source}, {step}, {length[0]})" + f" AS {source}" * (alias is named)),
        Edit(tokens[keys - 1].end + 1, tokens[keys - 1].end + 1, " GROUP BY window_end" if group is None else _ENDS),
        Edit(start, end, ""),
    )
    note = f"the last {length[0]} at each end of a window, of which there is one every {step}"
    return Foreign(f"{what} groups of the last rows are groups of windows", tokens[at], edits, note)


def _groups(tokens: Sequence[Token], at: int) -> bool:
    """Whether rows are taken together here."""
    return _word(tokens, at) == "GROUP BY" or (_word(tokens, at) in AGGREGATES and _word(tokens, at + 1) == "(")


def _partition(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``FROM s PARTITION BY k`` outside of all brackets."""
    before = [_word(tokens, place) for place in range(at)]
    if before.count("(") > before.count(")") or "FROM" not in before:
        return None
    edit = Edit(tokens[at].start, tokens[_end(tokens, at + 1) - 1].end + 1, "")
    what = "PARTITION BY of a query is of ksqlDB: rows that a join or a group takes together come together by its keys"
    return Foreign(what, tokens[at], (edit,))


def _offset(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    """``TUMBLE(t, c, size, offset)``, ``HOP(t, c, slide, size, offset)``, of RisingWave and Flink."""
    end = _closing(tokens, at + 1)
    parts = _parts(tokens[at + 2 : end])
    usual = 3 if _word(tokens, at) == "TUMBLE" else 4
    if len(parts) != usual + 1 or _word(parts[-1], 0) != "INTERVAL":
        return None
    edit = Edit(parts[-2][-1].end + 1, tokens[end].start, "")
    note = "windows begin at multiples of their step since 1970-01-01 00:00:00 UTC"
    return Foreign("windows with an offset are not supported", parts[-1][0], (edit,), note)


def _as_written(tokens: Sequence[Token], at: int) -> str:
    return str(tokens[at].text) if at < len(tokens) else ""


def _shuffle(script: str, tokens: Sequence[Token], at: int) -> Foreign | None:
    end = tokens[_end(tokens, at + 2) - 1]
    edit = Edit(tokens[at].start, end.end + 1, "")
    return Foreign("SHUFFLE BY says nothing here: keys choose the buckets", tokens[at], (edit,))


_Read = Callable[[str, Sequence[Token], int], Foreign | None]
_PIECES: tuple[tuple[tuple[str, ...], _Read], ...] = (
    (("WINDOW", "TUMBLING", "("), _window),
    (("WINDOW", "HOPPING", "("), _window),
    (("WINDOW", "SESSION", "("), _window),
    (("WITHIN",), _within),
    (("TABLE", "(", "CUMULATE", "("), _table_function),
    (("TABLE", "(", "SESSION", "("), _table_function),
    (("TUMBLE", "("), _offset),
    (("HOP", "("), _offset),
    (("TUMBLE", "("), _group_window),
    (("HOP", "("), _group_window),
    (("SESSION", "("), _group_window),
    (("MATCH_RECOGNIZE", "("), _pattern),
    (("DEDUP", "("), _dedup),
    (("EMIT", "LAST"), _last),
    (("EMIT", "PERIODIC"), _last),
    (("PARTITION BY",), _partition),
    (("SHUFFLE", "BY"), _shuffle),
)


def _source(tokens: Sequence[Token], at: int) -> tuple[Token, Token] | None:
    """The first name in FROM before a token, and its alias, which is the name where it has none."""
    begin = next((place for place in range(at, -1, -1) if _word(tokens, place) == "FROM"), None)
    if begin is None or _word(tokens, begin + 1) == "(" or _word(tokens, begin + 2) in ("(", "."):
        return None
    named = tokens[begin + 1]
    alias = begin + 3 if _word(tokens, begin + 2) == "AS" else begin + 2
    unnamed = alias >= len(tokens) or _word(tokens, alias) in (*_NEXT, "", "WITHIN", "MATCH_RECOGNIZE", ",", ";")
    return named, named if unnamed else tokens[alias]


def _end(tokens: Sequence[Token], at: int) -> int:
    """Where a list or a condition ends that begins at a token."""
    depth = 0
    for place in range(at, len(tokens)):
        word = _word(tokens, place)
        if depth == 0 and word in _NEXT:
            return place
        depth += (word == "(") - (word == ")")
    return len(tokens)


def _closing(tokens: Sequence[Token], at: int) -> int:
    """The place of the bracket that closes the one at ``at``; the last token where none does."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (_word(tokens, place) == "(") - (_word(tokens, place) == ")")
        if depth == 0:
            return place
    return len(tokens) - 1


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """What stands between the commas outside of brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for place, token in enumerate(tokens):
        word = _word(tokens, place)
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _of(script: str, part: Sequence[Token]) -> str:
    """SIZE, ADVANCE, GRACE, RETENTION; '' where a length stands alone."""
    word = _text(script, part[:1]).upper()
    return "" if word[:1].isdigit() else word


def _length(script: str, part: Sequence[Token]) -> str:
    """``SIZE 1 HOUR`` as INTERVAL '1 HOUR'; '' where there is none."""
    length = _text(script, part[-2:]).split()
    return f"INTERVAL '{' '.join(length)}'" if len(length) == 2 and length[0].isdigit() and length[1].isalpha() else ""


def _text(script: str, tokens: Sequence[Token]) -> str:
    return " ".join(script[tokens[0].start : tokens[-1].end + 1].split()) if tokens else ""


def _word(tokens: Sequence[Token], at: int) -> str:
    return Cursor("", list(tokens[at : at + 1])).word() if 0 <= at < len(tokens) else ""


def _words(tokens: Sequence[Token], at: int, count: int) -> list[str]:
    return [_word(tokens, place) for place in range(at, at + count)]
