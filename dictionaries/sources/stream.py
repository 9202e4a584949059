"""The current rows of a keyed stream of Dovetail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.changelog.errors import SourceRefused
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.resources import Resources, StreamRows


class StreamSource:
    """SOURCE(TIMEPLUS(STREAM 'name')), or SOURCE(TABLE(NAME 'name')): columns and types are those of the stream."""

    def __init__(self, definition: Definition, resources: Resources) -> None:
        parameters = definition.source.parameters
        self.stream = str(next(parameters[name] for name in ("stream", "table", "name") if name in parameters))
        self.where = f'dictionary "{definition.name}", stream "{self.stream}"'
        if resources.stream_rows is None:
            raise SourceRefused(
                f'the stream "{self.stream}" is not followed here', where=self.where, fix="look it up in a worker"
            )
        self._rows: StreamRows = resources.stream_rows(self.stream)

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return self._rows.fetch(by, keys)

    def load(self) -> Iterator[list[Row]]:
        yield from self._rows.load()

    def check(self) -> None:
        """The catalog knows whether the stream is there: who creates the dictionary asks it."""

    def close(self) -> None:
        """The rows belong to who lent them."""
