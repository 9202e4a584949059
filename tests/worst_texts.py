"""The texts that a regular expression is slowest over, derived from its parse tree: what it repeats, repeated.

A script too: reads calls (``Call``) as JSON, a line each, and answers each with how many times as long it takes over a
text that is eight times as long.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from tests import processor_time

MOST_GROWTH = 24.0
"""Eight where time grows with the text, 64 where it grows with its square."""
_TRIED, _SHORT, _LONG = 10_000, 125_000, 1_000_000
_NOTICED_S = 0.004
"""What takes less over a long text grows with no square."""
_SLOWEST, _TRIES = 3, 5
_STOPPED_S = 20
"""Of processor time, for a pattern that takes a square or more over a long text."""
_ENDS = ("", "\x00", "\n\x00")
_CATEGORIES = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_WORD: "!",
}
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_MANY = 4


@dataclass(frozen=True)
class Call:
    """How a pattern is used: ``function`` is that of ``re`` or of a compiled pattern."""

    pattern: str
    flags: int
    function: str
    of_bytes: bool = False


def samples(nodes: Sequence[Any]) -> list[str]:
    """Texts that the pattern takes, one for each of its alternatives."""
    found = [""]
    for node in nodes:
        found = [before + after for before in found for after in _of(node)][:_MANY]
    return found


def _of(node: Any) -> list[str]:
    match node:
        case (sre.LITERAL, code):
            return [chr(code)]
        case (sre.NOT_LITERAL, code):
            return ["b" if code == ord("a") else "a"]
        case (sre.ANY, _):
            return ["a"]
        case (sre.IN, items):
            return _of_class(items)
        case (sre.BRANCH, (_, branches)):
            return [text for branch in branches for text in samples(branch)[:2]][:12]
        case (sre.SUBPATTERN, (_, _, _, inside)) | (sre.ATOMIC_GROUP, inside):
            return samples(inside)
        case (op, (least, _, inside)) if op in _REPEATS:
            return [text * max(least, 1) for text in samples(inside)] + ([""] if least == 0 else [])
        case (sre.GROUPREF_EXISTS, (_, yes, no)):
            return samples(yes) + (samples(no) if no else [])
    return [""]


def _of_class(items: Sequence[Any]) -> list[str]:
    if items[0][0] is sre.NEGATE:
        taken = re.compile("[" + "".join(map(_written, items[1:])) + "]") if items[1:] else None
        return [next(sign for sign in "a1 .!-\n" if taken is None or not taken.match(sign))]
    return [_first(item) for item in items][:_MANY]


def _first(item: Any) -> str:
    match item:
        case (sre.LITERAL, code) | (sre.RANGE, (code, _)):
            return chr(code)
        case (sre.CATEGORY, category):
            return _CATEGORIES[category]
    return ""


def _written(item: Any) -> str:
    match item:
        case (sre.LITERAL, code):
            return re.escape(chr(code))
        case (sre.RANGE, (low, high)):
            return f"{re.escape(chr(low))}-{re.escape(chr(high))}"
        case (sre.CATEGORY, category):
            letter = str(category).rpartition("_")[2][0].lower()
            return "\\" + (letter.upper() if "NOT_" in str(category) else letter)
    return ""


def _inner(node: Any) -> Iterator[Sequence[Any]]:
    match node:
        case (sre.BRANCH, (_, branches)):
            yield from branches
        case (sre.SUBPATTERN, (_, _, _, inside)) | (sre.ATOMIC_GROUP, inside):
            yield inside
        case (sre.ASSERT | sre.ASSERT_NOT, (_, inside)):
            yield inside
        case (op, (_, _, inside)) if op in _REPEATS:
            yield inside
        case (sre.GROUPREF_EXISTS, (_, yes, no)):
            yield from filter(None, (yes, no))


def repeats(nodes: Sequence[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """What each repetition repeats, and what leads there."""
    for node in nodes:
        if node[0] in _REPEATS and node[1][1] > 1:
            yield from ((before, part) for part in samples(node[1][2]))
        for inside in _inner(node):
            yield from repeats(inside, before)
        before += _of(node)[0]


def texts(pattern: str | bytes, flags: int, size: int) -> Iterable[str]:
    """Texts of about ``size`` that the pattern hardly takes."""
    tree = parser.parse(pattern, flags)
    pairs = set(repeats(tree))
    whole = samples(tree)
    parts = {part for pair in pairs for part in (pair[1], pair[0] + pair[1], pair[0])}
    parts |= {text[:end] for text in whole for end in (len(text), len(text) - 1, len(text) // 2)}
    parts |= {sign for text in parts for sign in text}
    pumped = {("", part) for part in parts} | pairs | {(text, part) for text in whole for _, part in pairs}
    ends = [*_ENDS, *sorted(set(_left_out(tree)))[:3]]
    for before, part in sorted(pumped):
        if part:
            yield from (before + part * (size // len(part)) + end for end in ends)


def _left_out(nodes: Sequence[Any]) -> Iterator[str]:
    """The characters that a class of the pattern leaves out: one of them ends what it repeats."""
    for node in nodes:
        if node[0] is sre.IN and node[1][0][0] is sre.NEGATE:
            yield from (chr(code) for kind, code in node[1][1:] if kind is sre.LITERAL)
        for inside in _inner(node):
            yield from _left_out(inside)


def spent(call: Call, text: str) -> float:
    pattern: Any = re.compile(call.pattern.encode("latin-1") if call.of_bytes else call.pattern, call.flags)
    subject = text.encode("latin-1", "replace") if call.of_bytes else text
    match call.function:
        case "sub" | "subn":
            return processor_time.spent(lambda: pattern.sub(type(subject)(), subject))
        case "finditer" | "findall":
            return processor_time.spent(lambda: deque(pattern.finditer(subject), maxlen=0))
        case function:
            return processor_time.spent(lambda: getattr(pattern, function)(subject))


def growth(call: Call) -> tuple[float, str]:
    """The most that its time grows by where a text is eight times as long, and how that text begins."""
    tree = call.pattern.encode("latin-1") if call.of_bytes else call.pattern
    tried = list(texts(tree, call.flags, _TRIED))
    slowest = sorted(range(len(tried)), key=lambda place: -spent(call, tried[place]))[:_SLOWEST]
    pairs = enumerate(zip(*(texts(tree, call.flags, size) for size in (_SHORT, _LONG)), strict=True))
    grown = ((_growth(call, short, long), long[:40]) for place, (short, long) in pairs if place in slowest)
    return max(grown, default=(0.0, ""))


def _growth(call: Call, short: str, long: str) -> float:
    """Where it seems to be a square, of the least times of several: what else the machine does makes none shorter."""
    first, shorter = spent(call, long), max(min(spent(call, short) for _ in range(_TRIES)), 1e-6)
    if first <= _NOTICED_S:
        return 0.0
    if first < MOST_GROWTH * shorter:
        return first / shorter
    return min(first, *(spent(call, long) for _ in range(_TRIES))) / shorter


class _TooLong(Exception):
    pass


def _stop(_signal: int, _frame: object) -> None:
    raise _TooLong


if __name__ == "__main__":
    signal.signal(signal.SIGPROF, _stop)
    for line in sys.stdin:
        call = Call(**json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, _STOPPED_S)
        try:
            measured = growth(call)
        except _TooLong:
            measured = (float("inf"), "it was stopped")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([asdict(call), *measured]), flush=True)
