"""What only the queries of others have: windows and WITHIN of ksqlDB, table functions and MATCH_RECOGNIZE of Flink.

Where something means the same as here it is read (``same_windows``). The rest is refused with the whole statement as it
is written here: each piece that differs is an ``Edit`` of its text, and all of them are made together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from sqlglot.tokenizer_core import Token

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.work.interruption import expect_wanted
from dovetail.sql.syntax.cursor import Cursor, is_name
from dovetail.sql.syntax.dialect import DURATION
from dovetail.sql.syntax.grammar.pasted.filled_forms import noted
from dovetail.sql.syntax.grammar.pasted.foreign_names import LONGEST_FORM, with_own_names
from dovetail.sql.syntax.grammar.pasted.text_edits import Edit, applied
from dovetail.sql.syntax.grammar.pasted.words import NEXT, Words

_ARGUMENTS = ("DATA", "TIMECOL", "SIZE", "SLIDE", "STEP", "GAP", "OFFSET")
"""What Flink calls the arguments of windows, in the order in which they stand without these names."""
_STEPS = {"s": "1s", "m": "10s", "h": "1m", "d": "1h", "w": "1d"}
"""How often a window of so many of a unit begins in the place of EMIT LAST, which says nothing of that."""
_ENDS = ", window_end"
_LATE = "SETTINGS watermark_delay says how late rows may be"
_MOST_PIECES = 100


@dataclass(frozen=True)
class Foreign:
    """A piece of another system: ``what`` it is, the token where it begins, its edits, what is to be known of them."""

    what: str
    at: Token
    edits: tuple[Edit, ...]
    note: str = ""


def refuse_foreign(cursor: Cursor) -> None:
    """Raises Unsupported for a query that has pieces of other systems, with the statement that runs in its place."""
    words = without_names(Words(cursor.script, cursor.tokens))
    first = next(_foreign(words, cursor.index), None)
    if first is not None:
        fix = noted(*_mended(words, cursor.index)) if _is_short(words) else ""
        cursor.fail(first.what, fix=fix, kind=Unsupported, offset=first.at.start)


def in_own_words(script: str, tokens: Sequence[Token]) -> tuple[str, str]:
    """A query on one line without what only others have, and what is to be known of that; ``..`` for a long one."""
    words = without_names(Words(script, tokens))
    return _mended(words, 0) if _is_short(words) else ("..", "")


def _is_short(words: Words) -> bool:
    return int(words.tokens[-1].end) - int(words.tokens[0].start) < LONGEST_FORM


def _foreign(words: Words, start: int) -> Iterator[Foreign]:
    for at in range(start, len(words)):
        readers = _READERS.get(words.word(at), ())
        if readers:
            expect_wanted()
        found = (read(words, at) for beginning, read in readers if words.at(at, *beginning))
        yield from islice(filter(None, found), 1)


def _mended(words: Words, start: int) -> tuple[str, str]:
    found = list(islice(_foreign(words, start), _MOST_PIECES))
    form = applied(words.script, words.tokens, [edit for foreign in found for edit in foreign.edits])
    note = "; ".join(dict.fromkeys(foreign.note for foreign in found if foreign.note))
    return with_own_names(form) or form, note


def same_windows(tokens: Sequence[Token]) -> list[Token]:
    """``TUMBLE(TABLE t, DESCRIPTOR(c), ..)`` and HOP as ``TUMBLE(t, c, ..)``, within TABLE(..) or not: the tokens
    that say nothing are left out, and the others stay where they are.
    """
    words = without_names(Words("", tokens))
    left_out: set[int] = set()
    singular: dict[int, Token] = {}
    read = 0
    for at in sorted([*words.places("TUMBLE"), *words.places("HOP")]):
        end, column = words.closing(at + 1), words.first("DESCRIPTOR", at)
        if not words.at(at + 1, "(", "TABLE") or column is None or column >= end or words.word(column + 3) != ")":
            continue
        left_out |= {at + 2, column, column + 1, column + 3}
        if words.at(at - 2, "TABLE", "("):
            left_out |= {at - 2, at - 1, end + 1}
        # A window within another is read with it.
        singular |= {place: one for place in range(max(column, read), end) if (one := _singular(words, place))}
        read = max(read, end)
    return [singular.get(place, token) for place, token in enumerate(words.tokens) if place not in left_out]


def without_names(words: Words) -> Words:
    """``TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(c), SIZE => ..)`` without the names of its arguments."""
    arrows = [place for place in words.places("=>") if words.word(place - 1) in _ARGUMENTS]
    named = {place for arrow in arrows for place in (arrow - 1, arrow)}
    kept = [token for place, token in enumerate(words.tokens) if place not in named]
    return Words(words.script, kept) if named else words


def _singular(words: Words, at: int) -> Token | None:
    """``MINUTES`` behind ``INTERVAL '10'`` as MINUTE, which both dialects read."""
    token, word = words.tokens[at], words.word(at)
    if words.word(at - 2) != "INTERVAL" or not word.endswith("S"):
        return None
    return Token(token.token_type, word[:-1], token.line, token.col, token.start, token.end, token.comments)


def _window(words: Words, at: int) -> Foreign | None:
    """``FROM s [x] WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 5 MINUTES)``, HOPPING (.., ADVANCE BY ..), SESSION."""
    end = words.closing(at + 2)
    first = _source(words, at)
    lengths = {_of(words, part): _length(words, part) for part in words.parts(at + 3, end)}
    kind = words.word(at + 1)
    size = lengths.get("SIZE") or lengths.get("", "")
    if first is None or not size:
        return None
    step = f"{lengths.get('ADVANCE', size)}, " if kind == "HOPPING" else ""
    function = {"TUMBLING": "tumble", "HOPPING": "hop", "SESSION": "session"}[kind]
    named, alias = first
    source = _name(words, named)
    alias_text = "" if alias is not named else f" AS {source}"
    edits: list[Edit] = [
        Edit(named.start, named.end + 1, f"{function}({source}, {step}{size}){alias_text}"),
        Edit(words.tokens[at].start, words.tokens[end].end + 1, ""),
        *_grouped(words, at),
    ]
    grace, note = lengths.get("GRACE"), ""
    final = next((place for place in words.places("EMIT") if place >= end and words.word(place + 1) == "FINAL"), None)
    if grace and final is not None:
        word = words.tokens[final + 1]
        edits.append(Edit(word.start, word.end + 1, f"AFTER WINDOW CLOSE WITH DELAY {grace}"))
    elif grace:
        note = _LATE
    what = f"WINDOW {kind} is of ksqlDB: windows are of a stream in FROM"
    return Foreign(what, words.tokens[at], tuple(edits), note)


def _grouped(words: Words, at: int) -> Iterator[Edit]:
    """The windows are keys of the groups."""
    group = words.first("GROUP BY", at)
    if group is not None:
        last = words.tokens[words.end(group + 1) - 1]
        yield Edit(last.end + 1, last.end + 1, ", window_start, window_end")


def _within(words: Words, at: int) -> Foreign | None:
    """``a JOIN b WITHIN 1 HOUR [GRACE PERIOD ..] ON ..``, or ``WITHIN (1 HOUR, 2 HOURS)``: before and after."""
    on, join = words.first("ON", at), words.last("JOIN", at)
    if on is None or join is None or join + 1 >= at:
        return None
    bracketed = words.word(at + 1) == "("
    given = words.parts(at + 2, words.closing(at + 1)) if bracketed else [range(at + 1, min(at + 3, on))]
    before, after = (_length(words, part) for part in (given[0], given[-1])) if given else ("", "")
    first = _source(words, join)
    if not before or not after or first is None or not is_name(words.tokens[at - 1]):
        return None
    one, other = f"{_name(words, first[1])}._tp_time", f"{_name(words, words.tokens[at - 1])}._tp_time"
    near = f" AND {other} BETWEEN {one} - {before} AND {one} + {after}"
    last = words.tokens[words.end(on + 1) - 1]
    edits = (Edit(words.tokens[at].start, words.tokens[on].start, ""), Edit(last.end + 1, last.end + 1, near))
    grace = words.first("GRACE", at)
    note = _LATE if grace is not None and grace < on else ""
    return Foreign("WITHIN is of ksqlDB: how near rows are is a condition", words.tokens[at], edits, note)


def _table_function(words: Words, at: int) -> Foreign | None:
    """``TABLE(CUMULATE(TABLE t, DESCRIPTOR(c), step, size))``, ``TABLE(SESSION(TABLE t PARTITION BY k, ..))``."""
    end = words.closing(at + 1)
    kind = words.word(at + 2)
    parts = words.parts(at + 4, end - 1)
    begun = [words.word(part.start) for part in parts[:2]]
    if len(parts) < 3 or begun != ["TABLE", "DESCRIPTOR"] or len(parts[0]) < 2:
        return None
    table, time = words.tokens[parts[0].start + 1], words.text(parts[1].start + 2, parts[1].stop - 1)
    length = words.text(parts[-1].start, parts[-1].stop)
    function = "TUMBLE" if kind == "CUMULATE" else "SESSION"
    made = f"{function}({_name(words, table)}, {time}, {length})"
    note = (
        "a window of the whole size, whose rows are updated as it fills"
        if kind == "CUMULATE"
        else "sessions are of the other keys of GROUP BY"
    )
    what = f"{kind} over TABLE and DESCRIPTOR is of Flink"
    return Foreign(what, words.tokens[at], (Edit(words.tokens[at].start, words.tokens[end].end + 1, made),), note)


def _group_window(words: Words, at: int) -> Foreign | None:
    """``GROUP BY .., TUMBLE(t, INTERVAL '1' HOUR)``, with TUMBLE_START(..) and the like elsewhere."""
    end = words.closing(at + 1)
    begun = [-1 if (place := words.last(word, at)) is None else place for word in ("GROUP BY", "FROM", "SELECT")]
    first = _source(words, at)
    parts = words.parts(at + 2, end)
    if max(begun) != begun[0] or first is None or len(parts) < 2 or words.word(parts[1].start) != "INTERVAL":
        return None
    named, alias = first
    arguments = ", ".join(words.text(part.start, part.stop) for part in parts)
    source = _name(words, named)
    kind = words.word(at)
    alias_text = f" AS {source}" if alias is named else ""
    edits = [
        Edit(named.start, named.end + 1, f"{kind}({source}, {arguments}){alias_text}"),
        Edit(words.tokens[at].start, words.tokens[end].end + 1, "window_start, window_end"),
    ]
    for suffix, column in (("_START", "window_start"), ("_END", "window_end")):
        for place in words.places(f"{kind}{suffix}"):
            if words.word(place + 1) == "(":
                closing = words.closing(place + 1)
                edits.append(Edit(words.tokens[place].start, words.tokens[closing].end + 1, column))
    return Foreign(f"{kind} among the keys is of Flink: windows are of a table in FROM", words.tokens[at], tuple(edits))


def _pattern(words: Words, at: int) -> Foreign | None:
    """``FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY t ..)``: no translation; rows beside those before them."""
    first = _source(words, at)
    order, select = words.first("ORDER BY", at), words.last("SELECT", at)
    end = words.closing(at + 1)
    if first is None or select is None or order is None or order >= min(end, len(words) - 1):
        return None
    by, time = words.text(at + 2, order + 2), words.text(order + 1, order + 2)
    lag = f"SELECT *, lag({time}) OVER ({by}) AS before FROM {_name(words, first[0])}"
    edit = Edit(words.tokens[select].start, words.tokens[words.end(end + 1) - 1].end + 1, lag)
    what = "patterns of rows, MATCH_RECOGNIZE, are not supported"
    return Foreign(what, words.tokens[at], (edit,), "each row beside the one before it, for conditions around this")


def _dedup(words: Words, at: int) -> Foreign | None:
    """``dedup(s, k, ..[, 1m][, limit])`` in FROM."""
    end = words.closing(at + 1)
    if words.word(at - 1) not in ("FROM", "JOIN"):
        return None
    source, *keys = [words.text(part.start, part.stop) for part in words.parts(at + 2, end)] or [""]
    named = [key for key in keys if not key[:1].isdigit()]
    if not named:
        return None
    alias = "" if words.word(end + 1) not in ("", *NEXT) else f" AS {source}"
    made = f"(SELECT * FROM {source} LIMIT 1 BY {', '.join(named)}){alias}"
    note = "the first row of each key, however long ago" if len(named) < len(keys) else ""
    edit = Edit(words.tokens[at].start, words.tokens[end].end + 1, made)
    return Foreign("dedup() in FROM is not supported", words.tokens[at], (edit,), note)


def _last(words: Words, at: int) -> Foreign | None:
    """``EMIT [PERIODIC 5s AND] LAST 1h [ON PROCTIME]``: of a query without groups, where it begins; of one with them,
    windows that begin one after the other.
    """
    last = words.first("LAST", at)
    if last is None:
        return None
    length = DURATION.fullmatch(_as_written(words, last + 1))
    if length is None:
        return None
    over = last + 4 if words.at(last + 2, "ON", "PROCTIME") else last + 2
    start, end = words.tokens[at].start, words.tokens[over - 1].end + 1
    what = "EMIT LAST is of Timeplus:"
    if words.grouping >= at:
        edit = Edit(start, end, f"SETTINGS seek_to = '-{length[0]}'")
        return Foreign(f"{what} where a query begins is a setting", words.tokens[at], (edit,))
    step = _as_written(words, at + 2) if words.word(at + 1) == "PERIODIC" else _STEPS.get(length[2], length[0])
    first = _source(words, at)
    if first is None or DURATION.fullmatch(step) is None:
        return None
    named, alias = first
    source = _name(words, named)
    group, selected = words.first("GROUP BY", 0), words.last("SELECT", at)
    group = None if group is None or group > at else group
    keys = at if group is None else words.end(group + 1)
    if selected is None:
        return None
    select = words.tokens[selected]
    edits = (
        Edit(select.end + 1, select.end + 1, " window_end,"),
        Edit(named.start, named.end + 1, f"hop({source}, {step}, {length[0]})" + f" AS {source}" * (alias is named)),
        Edit(
            words.tokens[keys - 1].end + 1,
            words.tokens[keys - 1].end + 1,
            " GROUP BY window_end" if group is None else _ENDS,
        ),
        Edit(start, end, ""),
    )
    note = f"the last {length[0]} at each end of a window, of which there is one every {step}"
    return Foreign(f"{what} groups of the last rows are groups of windows", words.tokens[at], edits, note)


def _partition(words: Words, at: int) -> Foreign | None:
    """``FROM s PARTITION BY k`` outside of all brackets."""
    if words.depth(at) > 0 or words.last("FROM", at) is None:
        return None
    edit = Edit(words.tokens[at].start, words.tokens[words.end(at + 1) - 1].end + 1, "")
    what = "PARTITION BY of a query is of ksqlDB: rows that a join or a group takes together come together by its keys"
    return Foreign(what, words.tokens[at], (edit,))


def _offset(words: Words, at: int) -> Foreign | None:
    """``TUMBLE(t, c, size, offset)``, ``HOP(t, c, slide, size, offset)``, of RisingWave and Flink."""
    end = words.closing(at + 1)
    parts = words.parts(at + 2, end)
    usual = 3 if words.word(at) == "TUMBLE" else 4
    if len(parts) != usual + 1 or words.word(parts[-1].start) != "INTERVAL":
        return None
    edit = Edit(words.tokens[parts[-2].stop - 1].end + 1, words.tokens[end].start, "")
    note = "windows begin at multiples of their step since 1970-01-01 00:00:00 UTC"
    return Foreign("windows with an offset are not supported", words.tokens[parts[-1].start], (edit,), note)


def _as_written(words: Words, at: int) -> str:
    return str(words.tokens[at].text) if at < len(words) else ""


def _shuffle(words: Words, at: int) -> Foreign | None:
    end = words.tokens[words.end(at + 2) - 1]
    edit = Edit(words.tokens[at].start, end.end + 1, "")
    return Foreign("SHUFFLE BY says nothing here: keys choose the buckets", words.tokens[at], (edit,))


_Read = Callable[[Words, int], Foreign | None]
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
_READERS: Mapping[str, Sequence[tuple[tuple[str, ...], _Read]]] = {
    begun: [piece for piece in _PIECES if piece[0][0] == begun] for (begun, *_), _ in _PIECES
}
"""The pieces by their first words."""


def _source(words: Words, at: int) -> tuple[Token, Token] | None:
    """The first name in FROM before a token, and its alias, which is the name where it has none."""
    begin = words.last("FROM", at)
    if begin is None or begin + 1 >= len(words) or words.word(begin + 1) == "(" or words.word(begin + 2) in ("(", "."):
        return None
    named = words.tokens[begin + 1]
    alias = begin + 3 if words.word(begin + 2) == "AS" else begin + 2
    unnamed = alias >= len(words) or words.word(alias) in (*NEXT, "", "WITHIN", "MATCH_RECOGNIZE", ",", ";")
    return named, named if unnamed else words.tokens[alias]


def _of(words: Words, part: range) -> str:
    """SIZE, ADVANCE, GRACE, RETENTION; '' where a length stands alone."""
    word = _name(words, words.tokens[part.start]).upper()
    return "" if word[:1].isdigit() else word


def _length(words: Words, part: range) -> str:
    """``SIZE 1 HOUR`` as INTERVAL '1 HOUR'; '' where there is none."""
    length = " ".join(_name(words, words.tokens[place]) for place in part[-2:]).split()
    return f"INTERVAL '{' '.join(length)}'" if len(length) == 2 and length[0].isdigit() and length[1].isalpha() else ""


def _name(words: Words, token: Token) -> str:
    return words.script[token.start : token.end + 1]
