"""Rows as a dictionary declares them, and the rows of each key that was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.contracts import KEYS_PER_STATEMENT
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.sources.source_values import ReadColumn, UnfitValue, column_reader, value_reader

T = TypeVar("T")
ROWS_PER_PIECE = 10_000


class SourceRowReader:
    """Turns what a source gave into rows of a definition.

    A NULL becomes the DEFAULT of its column. Raises RecordRejected for a value that is not of its column's type, and
    for a NULL where the column is NOT NULL and has no DEFAULT.
    """

    def __init__(self, definition: Definition, place: str) -> None:
        self._definition = definition
        self._place = place
        self._readers: list[ReadColumn] = [column_reader(column.type) for column in definition.columns]
        self._defaults = [
            None if column.default is None else value_reader(column.type)(column.default)
            for column in definition.columns
        ]

    def read(self, given: Sequence[Sequence[Any]]) -> list[Row]:
        """``given`` has the columns of the definition, in their order."""
        if not given:
            return []
        columns = [self._column(position, values) for position, values in enumerate(zip(*given, strict=True))]
        return list(zip(*columns, strict=True))

    def matching(self, by: Sequence[str], keys: Sequence[Key], given: Sequence[Sequence[Any]]) -> dict[Key, Rows]:
        """The rows of ``given`` under each of ``keys``; others, which a lenient collation let through, are left out.

        Only rows that were asked for are read, so a value that does not fit troubles nobody else.
        """
        # Under the very keys that were asked: 1.50 and 1.5 are equal, and not the same text in a cache.
        wanted = {key: key for key in keys}
        found = [(wanted[key], row) for key, row in zip(self.row_keys(by, given), given, strict=True) if key in wanted]
        grouped: dict[Key, list[Row]] = {}
        for (key, _), row in zip(found, self.read([row for _, row in found]), strict=True):
            grouped.setdefault(key, []).append(row)
        return {key: tuple(rows) for key, rows in grouped.items()}

    def fetch_in_statements(
        self, by: Sequence[str], keys: Sequence[Key], ask: Callable[[list[Key]], Sequence[Sequence[Any]]]
    ) -> dict[Key, Rows]:
        """``matching``, over what ``ask`` gives for KEYS_PER_STATEMENT at a time."""
        answer: dict[Key, Rows] = {}
        for chunk in in_pieces(keys, KEYS_PER_STATEMENT):
            answer |= self.matching(by, chunk, ask(chunk))
        return answer

    def row_keys(self, by: Sequence[str], given: Sequence[Sequence[Any]]) -> list[Key]:
        """The key of each row, with None in the place of what its type cannot hold.

        '12abc' equals 12 for some databases; it is no number, and no row of the key 12.
        """
        positions = [self._definition.names.index(name) for name in by]
        columns = [self._key_column(position, [row[position] for row in given]) for position in positions]
        return list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))

    def _key_column(self, position: int, values: Sequence[Any]) -> Sequence[Any]:
        read = self._readers[position]
        try:
            return read(values)
        except UnfitValue:
            return [self._or_none(read, value) for value in values]

    @staticmethod
    def _or_none(read: ReadColumn, value: Any) -> Any:
        try:
            return read([value])[0]
        except UnfitValue:
            return None

    def _column(self, position: int, values: Sequence[Any]) -> Sequence[Any]:
        column, default = self._definition.columns[position], self._defaults[position]
        try:
            read = self._readers[position](values)
        except UnfitValue as error:
            raise RecordRejected(
                f'column "{column.name}": {error}',
                where=self._place,
                fix=f'declare "{column.name}" with a type that holds it, such as string',
            ) from None
        if (default is None and column.nullable) or None not in read:
            return read
        if default is None:
            raise RecordRejected(
                f'column "{column.name}" is NULL in the source, and declared NOT NULL',
                where=self._place,
                fix=f'declare a DEFAULT for "{column.name}", or take NOT NULL away',
            )
        return [default if value is None else value for value in read]


def in_pieces(elements: Iterable[T], size: int) -> Iterator[list[T]]:
    """``elements`` in lists of at most ``size``."""
    piece: list[T] = []
    for element in elements:
        piece.append(element)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece
