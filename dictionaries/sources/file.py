"""A file of CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

from dovetail.changelog.errors import ServiceUnavailable, SourceRefused
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.sources.indexed_rows import IndexedRows
from dovetail.dictionaries.sources.source_rows import SourceRowReader
from dovetail.dictionaries.sources.text_formats import format_of, parse_rows

Version = tuple[int, int, int]
"""Inode, size and time of the last change in nanoseconds: what tells one content of a file from another."""


class FileSource:
    """SOURCE(FILE(PATH FORMAT)); a relative path begins at the folder of files that statements may name.

    The file is read when it is first asked, and again whenever it has changed since.
    """

    def __init__(self, definition: Definition, outside: Outside) -> None:
        self.definition = definition
        self.path = str(definition.source.parameters["path"])
        self.where = f'dictionary "{definition.name}", file {self.path}'
        self._files = outside.files
        given = definition.source.parameters.get("format") or format_of(self.path)
        if given is None:
            raise SourceRefused(
                "the file's name tells no format", where=self.where, fix="FORMAT 'CSV' or 'JSONEachRow'"
            )
        self._format = str(given).lower()
        self._reader = SourceRowReader(definition, self.where)
        self._lock = Lock()
        self._read_rows: tuple[Version, IndexedRows] | None = None

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return self._current().fetch(by, keys)

    def load(self) -> Iterator[list[Row]]:
        yield from self._current().load()

    def check(self) -> None:
        self._current()

    def close(self) -> None:
        self._read_rows = None

    def _current(self) -> IndexedRows:
        with self._lock:
            try:
                found = self._files.place(self.path, self.where).stat()
                version = (found.st_ino, found.st_size, found.st_mtime_ns)
                if self._read_rows is None or self._read_rows[0] != version:
                    content = self._files.read(self.path, self.where)
                    given = parse_rows(content, self._format, self.definition.columns, self.where)
                    self._read_rows = version, IndexedRows(self._reader, given)
                return self._read_rows[1]
            except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError) as error:
                raise SourceRefused(
                    f"the file cannot be read: {error.strerror}", where=self.where, fix="create it, or correct PATH"
                ) from error
            except OSError as error:
                raise ServiceUnavailable(f"the file cannot be read: {error.strerror}", where=self.where) from error
