"""A source that can be counted, slowed and broken, and dictionaries over it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.changelog.schema import Column
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, Parameter, SourceSpec
from dovetail.services.worker.tables.followers import KeyWatch

NOW_MS = 1_700_000_000_000
TTL_MS = 60_000


@dataclass
class FakeSource:
    """Rows in a dict; ``before`` is called with the keys of each statement, after the rows were read."""

    rows: dict[Key, Rows] = field(default_factory=dict)
    before: Callable[[Sequence[Key]], None] = lambda keys: None
    is_down: bool = False
    fetched: list[list[Key]] = field(default_factory=list)
    loads: int = 0
    since: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        with self.lock:
            self.fetched.append(list(keys))
        if self.is_down:
            raise ServiceUnavailable("the fake source is down")
        found = {key: self.rows[key] for key in keys if key in self.rows}
        self.before(keys)
        return found

    def load(self) -> Iterator[list[Row]]:
        self.loads += 1
        if self.is_down:
            raise ServiceUnavailable("the fake source is down")
        yield [row for rows in self.rows.values() for row in rows]

    def load_since(self, since_ms: int) -> Iterator[list[Row]]:
        self.since.append(since_ms)
        yield [row for rows in self.rows.values() for row in rows]

    def close(self) -> None:
        pass

    def put(self, **names: str) -> None:
        self.rows |= {key: ((key, name),) for key, name in names.items()}

    @property
    def fetched_keys(self) -> list[Key]:
        return [key for keys in self.fetched for key in keys]


@dataclass
class FakeStream:
    """The rows of a keyed stream, whose first ``width`` columns are the key; ``watch`` is the last one."""

    width: int
    rows: dict[Key, Row] = field(default_factory=dict)
    watch: KeyWatch = field(default_factory=lambda: KeyWatch((), frozenset()))

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return {key: (self.rows[key],) for key in keys if key in self.rows}

    def load(self) -> Iterator[list[Row]]:
        yield list(self.rows.values())

    @contextmanager
    def watched(self, by: Sequence[str], keys: Sequence[Key]) -> Iterator[KeyWatch]:
        self.watch = KeyWatch(tuple(by), frozenset(keys))
        yield self.watch

    def write(self, rows: Sequence[Row], deleted: Sequence[Row] = ()) -> None:
        self.rows |= {self.key(row): row for row in rows}
        for row in deleted:
            self.rows.pop(self.key(row), None)
        self.watch.count.update(map(self.key, (*rows, *deleted)))

    def key(self, row: Row) -> Key:
        return row[0] if self.width == 1 else row[: self.width]


def definition(
    layout: str = "hybrid_hash_cache",
    *,
    lifetime_s: tuple[int, int] = (0, 0),
    hot_keys: int = 100,
    source: Mapping[str, Parameter] | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    **settings: Parameter,
) -> Definition:
    """A dictionary ``d(id string, name string)``; entries live for exactly a minute if nothing else is said."""
    given: dict[str, Parameter] = {"ttl_jitter": 0.0, "timeout_ms": 50.0, **settings}
    if layout == "hybrid_hash_cache":
        parameters = {"ttl": TTL_MS / 1000, "path": "test", "max_hot_key_count": hot_keys, **(parameters or {})}
    return Definition(
        "d",
        (Column("id", pa.string()), Column("name", pa.string())),
        ("id",),
        SourceSpec("fake", source or {}),
        LayoutSpec(layout, parameters or {}),
        lifetime_s,
        given,
    )


def names(answers: Sequence[Rows]) -> list[str | None]:
    """The second column of the only row of each answer; None: absent."""
    return [rows[0][1] if rows else None for rows in answers]


def settle(condition: Callable[[], bool]) -> None:
    """Waits for something that happens behind the lookups."""
    waiting = threading.Event()
    for _ in range(1000):
        if condition():
            return
        waiting.wait(0.005)
    raise AssertionError("it did not happen")
