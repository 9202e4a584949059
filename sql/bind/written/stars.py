"""What each ``*`` of a query stood for: the query can be written with these columns, and reads none that come later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.faults import SCRIPT

_found: ContextVar[dict[tuple[str, int], tuple[int, str]] | None] = ContextVar("stars", default=None)


class StarColumns:
    """The stars of the queries that were bound: by text and place, where each ends and its columns."""

    def __init__(self, found: dict[tuple[str, int], tuple[int, str]]) -> None:
        self._found = found

    def written_out(self, script: str) -> str:
        """``script`` with the columns in the place of each of its stars."""
        made = script
        for (text, start), (end, columns) in sorted(self._found.items(), reverse=True):
            if text == script:
                made = made[:start] + columns + made[end + 1 :]
        return made


@contextmanager
def stars_noted() -> Iterator[StarColumns]:
    found: dict[tuple[str, int], tuple[int, str]] = {}
    before = _found.set(found)
    try:
        yield StarColumns(found)
    finally:
        _found.reset(before)


def note_star(star: exp.Star, qualifier: exp.Expr | None, columns: Sequence[tuple[str, str]]) -> None:
    """``*``, or ``qualifier.*``, stands for ``columns``, each by its table and its name. One that leaves columns out is
    not noted: EXCEPT names them.
    """
    found = _found.get()
    if found is None or SCRIPT not in star.meta or star.args.get("except_") or star.args.get("replace"):
        return
    start = star.meta["start"] if qualifier is None else qualifier.meta.get("start")
    if start is not None:
        listed = (".".join(_quoted(part) for part in parts if part) for parts in columns)
        found[star.meta[SCRIPT], start] = star.meta["end"], ", ".join(listed)


def _quoted(name: str) -> str:
    tokens = Dovetail().tokenize(name)
    plain = len(tokens) == 1 and tokens[0].token_type is TokenType.VAR and name == name.lower()
    return exp.to_identifier(name, quoted=not plain).sql()
