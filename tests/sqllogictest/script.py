"""sqllogictest files, in the format of sqllogictest-rs, as records; what a file includes stands in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_RETRY = re.compile(r"\bretry\s+\d+\s+backoff\s+\S+")
_SORTS = ("nosort", "rowsort", "valuesort")
_RESULTS = "----"


class RecordKind(StrEnum):
    """What a record asks for; ``MISSING``: a file that is included and not there."""

    STATEMENT = "statement"
    QUERY = "query"
    SYSTEM = "system"
    MISSING = "missing"


@dataclass(frozen=True)
class Record:
    """A record of the file ``file``, from ``line`` on.

    fails      whether an error is expected, and ``reason``, the pattern of its text where the file gives one
    sort       how rows are put in order before they are compared
    condition  ``skipif x`` or ``onlyif x``
    """

    kind: RecordKind
    file: str
    line: int
    sql: str = ""
    fails: bool = False
    reason: str = ""
    sort: str = "nosort"
    results: tuple[str, ...] = ()
    condition: str = ""

    @property
    def expects(self) -> str:
        return "error" if self.fails else "ok"


def records(path: Path, root: Path) -> Iterator[Record]:
    """The records of ``path`` in order."""
    return _Reader(path, root, ()).records()


class _Reader:
    def __init__(self, path: Path, root: Path, including: Sequence[Path]) -> None:
        self._path, self._root, self._including = path, root, including
        self._name = str(path.relative_to(root))
        self._lines = [line.rstrip("\r") for line in path.read_text(encoding="utf-8", errors="replace").split("\n")]
        self._at = 0
        self._sort = _SORTS[0]
        self._condition = ""

    def records(self) -> Iterator[Record]:
        while self._at < len(self._lines):
            words = self._lines[self._at].split()
            self._at += 1
            if not words or words[0].startswith("#"):
                continue
            match words[0]:
                case "halt":
                    return
                case "include":
                    yield from self._included(words[1])
                case "skipif" | "onlyif":
                    self._condition = " ".join(words)
                case "control":
                    self._sort = words[2] if words[1:2] == ["sortmode"] else self._sort
                case "statement" | "query" | "system":
                    yield self._record(RecordKind(words[0]), words[1:])
                    self._condition = ""

    def _included(self, pattern: str) -> Iterator[Record]:
        found = sorted(self._path.parent.glob(pattern.removeprefix("./")))
        if not found:
            yield Record(RecordKind.MISSING, self._name, self._at, f"include {pattern}")
        for path in found:
            if path not in self._including:
                yield from _Reader(path, self._root, (*self._including, self._path)).records()

    def _record(self, kind: RecordKind, head: Sequence[str]) -> Record:
        line = self._at
        sql = "\n".join(self._until_blank(_RESULTS)).strip().rstrip(";").strip()
        results = tuple(self._until_blank()) if self._lines[self._at - 1].strip() == _RESULTS else ()
        words = _RETRY.sub("", " ".join(head)).split()
        sorts = [word for word in words if word in _SORTS]
        return Record(
            kind,
            self._name,
            line,
            sql,
            fails=words[:1] == ["error"],
            reason=" ".join(words[1:]) if words[:1] == ["error"] else "",
            sort=sorts[-1] if sorts else self._sort,
            results=results,
            condition=self._condition,
        )

    def _until_blank(self, end: str = "") -> Iterator[str]:
        """The lines before the next blank one, or before ``end``."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.strip() in ("", end):
                return
            yield line
