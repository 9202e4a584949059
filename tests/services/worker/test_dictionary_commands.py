"""Commands as they arrive, on the dictionaries of a process: keys of every type that a key may have."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.schema import Column
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dovetail.dictionaries.key_reader import KeyReader
from dovetail.dictionaries.layouts.hybrid import Hybrid
from dovetail.dictionaries.wall_clock import wall_clock_ms
from dovetail.services.commands.command_codec import Answer, Misses, Outcome, Refresh, command_bytes, command_of
from dovetail.services.session.why.cached_misses import miss_lines
from dovetail.services.worker.query.dictionary_commands import DictionaryCommands
from tests.dictionaries.cache_world import NOW_MS, FakeSource

KEYS: dict[str, tuple[list[pa.DataType], Any]] = {
    "text": ([pa.string()], "p1"),
    "number as text": ([pa.string()], "7"),
    "integer": ([pa.int64()], 7),
    "unsigned": ([pa.uint64()], 2**64 - 1),
    "boolean": ([pa.bool_()], True),
    "date": ([pa.date32()], date(2026, 1, 31)),
    "decimal": ([pa.decimal128(10, 2)], Decimal("1.50")),
    "instant": ([pa.timestamp("ms", "UTC")], datetime(2026, 1, 31, 12, 30, 0, 250000, UTC)),
    "timestamp": ([pa.timestamp("us")], datetime(2026, 1, 31, 12, 30, 0, 1)),  # noqa: DTZ001 - its type has no zone
    "bytes": ([pa.binary()], b"raw"),
    "several": ([pa.string(), pa.date32(), pa.decimal128(4, 1)], ("eu", date(2026, 1, 31), Decimal("2.5"))),
}


def executed(types: list[pa.DataType], held: Any, given: Any) -> tuple[Outcome, int]:
    """What came of a refresh of ``given`` where ``held`` is cached; how often the source was asked for it."""
    names = tuple(f"k{place}" for place in range(len(types)))
    columns = tuple(Column(name, kind) for name, kind in zip(names, types, strict=True))
    spec = LayoutSpec("hybrid_hash_cache", {"ttl": 60.0, "path": "test"})
    definition = Definition("d", columns, names, SourceSpec("fake"), spec)
    source = FakeSource({held: (held if isinstance(held, tuple) else (held,),)})
    with closing(Hybrid(definition, source, None)) as layout:
        layout.lookup([held], NOW_MS)
        command = command_of(command_bytes(Refresh("d", [given])))
        assert command is not None
        outcome = DictionaryCommands({"d": layout}, {"d": KeyReader(definition)}).execute(command)
        layout.lookup([held], NOW_MS)
        return outcome, len(source.fetched)


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_of_any_type_is_forgotten(kind: str) -> None:
    types, key = KEYS[kind]
    assert executed(types, key, key) == (Outcome(True, {"invalidated": 1}), 2)


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_that_is_cached_as_absent_is_told(kind: str) -> None:
    types, key = KEYS[kind]
    names = tuple(f"k{place}" for place in range(len(types)))
    columns = tuple(Column(name, kind) for name, kind in zip(names, types, strict=True))
    spec = LayoutSpec("hybrid_hash_cache", {"ttl": 60.0, "negative_ttl": 10.0, "path": "test"})
    definition = Definition("d", columns, names, SourceSpec("fake"), spec)
    source = FakeSource({})
    command = command_of(command_bytes(Misses("d", [key])))
    assert command is not None
    with closing(Hybrid(definition, source, None)) as layout:
        commands = DictionaryCommands({"d": layout}, {"d": KeyReader(definition)})
        assert commands.execute(command) == Outcome(True, {"misses": []})
        layout.lookup([key], wall_clock_ms())
        outcome = commands.execute(command)
        [miss] = outcome.detail["misses"]
        assert miss["place"] == 0
        assert 0 <= miss["asked_ms_ago"] < 10_000
        assert 0 < miss["left_ms"] <= 10_000
        assert len(source.fetched) == 1
        assert layout.misses([key], wall_clock_ms() + 10_000) == {}
        layout.invalidate()
        assert commands.execute(command) == Outcome(True, {"misses": []})
    answer = Answer("1", "w1", outcome)
    [line] = miss_lines(answer, "d", [key])
    assert "w1 has cached that d has no row of" in line
    assert line.endswith("not there; cached for 10 s more; dovetail dictionary refresh d forgets it")
    assert not list(miss_lines(answer, "d", []))
    nonsense: list[object] = ["x", [7], [{}], [{**miss, "place": None}], [{**miss, "place": -1}]]
    for wrong in nonsense:
        assert not list(miss_lines(Answer("1", "w1", Outcome(True, {"misses": wrong})), "d", [key]))
    assert not list(miss_lines(Answer("1", "w1", Outcome.failed("away")), "d", [key]))


@pytest.mark.parametrize(("kind", "given"), [("date", "soon"), ("integer", "p1"), ("several", ["eu"]), ("text", None)])
def test_what_is_no_key_is_refused(kind: str, given: Any) -> None:
    types, key = KEYS[kind]
    outcome, fetches = executed(types, key, given)
    assert (outcome.ok, fetches) == (False, 1)
    assert "is no key of d" in outcome.error
