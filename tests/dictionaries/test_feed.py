"""The feed of a dictionary: what is declared, what its records say, and what a cache makes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.lookup import Key, Rows
from dovetail.changelog.schema import Column
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, Parameter, SourceSpec
from dovetail.dictionaries.feed.feed_decoder import FeedDecoder
from dovetail.dictionaries.feed.feed_definition import Feed, FeedFormat, feed_of
from dovetail.dictionaries.feed.resumption import LONGEST_CATCH_UP, resume_offsets
from dovetail.dictionaries.feed.source_changes import Change, SourceChanges
from dovetail.dictionaries.layouts.hybrid import Hybrid
from dovetail.dictionaries.layouts.loaded import Loaded
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names

COLUMNS = (
    Column("id", pa.int64()),
    Column("name", pa.string(), default="unknown"),
    Column("price", pa.decimal128(10, 2)),
)
HYBRID = LayoutSpec("hybrid_hash_cache", {"ttl": 60, "path": "x"})
TABLE: dict[str, Parameter] = {"path": "x.db", "table": "products"}


def declared(
    layout: LayoutSpec = HYBRID,
    source: dict[str, Parameter] = TABLE,
    columns: tuple[Column, ...] = COLUMNS,
    key: tuple[str, ...] = ("id",),
    **settings: Parameter,
) -> Definition:
    return define("d", columns, key, SourceSpec("sqlite", source), layout, None, {"feed_topic": "t", **settings})


def decoder(form: str, *, stores: bool = False, **given: Any) -> FeedDecoder:
    return FeedDecoder(declared(**given), Feed("t", FeedFormat(form), stores))


def said(reader: FeedDecoder, key: Any, value: Any) -> dict[Key, Rows | None] | str:
    """What one record changes, or why it is left out; objects are written as JSON."""
    changes = reader.decode(5, [(7, written(key), written(value))])
    assert (changes.start, changes.end, changes.records) == (5, 8, 1)
    if changes.rejected:
        return changes.reason
    return "all" if changes.is_whole else {changed: rows for changed, (_, rows) in changes.by_key.items()}


def written(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else orjson.dumps(value)


# -- declared


def test_a_feed_is_declared_in_the_settings() -> None:
    made = declared(feed_format="DEBEZIUM", feed_values="true")
    assert feed_of(made) == Feed("t", FeedFormat.DEBEZIUM, stores=True)
    assert feed_of(declared()) == Feed("t", FeedFormat.KEY, stores=False)
    assert feed_of(definition()) is None


@pytest.mark.parametrize(
    ("given", "error", "what", "fix"),
    [
        ({"feed_format": "debezum"}, UnknownName, "debezum", 'did you mean "debezium"?'),
        ({"feed_topic": "", "feed_format": "json"}, SqlError, "names no topic", "feed_topic ="),
        ({"feed_topic": ""}, SqlError, "names no topic", "feed_topic ="),
        ({"feed_values": True}, SqlError, "keys carry no values", "feed_format = 'json'"),
        ({"layout": LayoutSpec("direct")}, Unsupported, "keeps nothing", "HYBRID_HASH_CACHE"),
        ({"layout": LayoutSpec("mutable_cache", {"stream": "s"})}, Unsupported, "has a stream", "STREAM"),
        (
            {"layout": LayoutSpec("hashed"), "feed_format": "json", "feed_values": True},
            Unsupported,
            "HASHED",
            "feed_values = false",
        ),
        (
            {"source": {**TABLE, "where": "id > 1"}, "feed_format": "json", "feed_values": True},
            Unsupported,
            "WHERE",
            "feed_values = false",
        ),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], error: type[SqlError], what: str, fix: str) -> None:
    with pytest.raises(error) as refused:
        declared(**given)
    assert what in refused.value.what
    assert fix in refused.value.fix


# -- records


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"17", None),
        (b"17", b"anything"),
        (None, b"17"),
        ({"id": 17}, None),
        ({"id": 17, "region": "eu"}, None),
        ({"schema": {}, "payload": {"id": 17}}, None),
    ],
)
def test_a_key_is_a_text_or_json(key: Any, value: Any) -> None:
    assert said(decoder("key"), key, value) == {17: None}


def test_a_key_of_several_columns() -> None:
    reader = decoder("key", key=("id", "name"))
    assert said(reader, {"name": "a", "id": 1}, None) == {(1, "a"): None}
    assert said(reader, [1, "a"], None) == {(1, "a"): None}
    assert "no key (id, name)" in said(reader, [1], None)


def test_a_key_has_the_value_that_a_lookup_asks_for() -> None:
    at = decoder("key", columns=(Column("at", pa.timestamp("ms", "UTC")),), key=("at",))
    assert said(at, {"at": "2026-01-02T03:04:05Z"}, None) == {datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC): None}
    text = decoder("key", columns=(Column("id", pa.string()),))
    assert said(text, b"p1", None) == said(text, {"id": "p1"}, None) == said(text, b'"p1"', None) == {"p1": None}
    assert said(text, {"id": 42}, None) == {"42": None}
    price = decoder("key", columns=(Column("id", pa.decimal128(30, 4)),))
    assert said(price, b'{"id":12345678901234567890.1234}', None) == {Decimal("12345678901234567890.1234"): None}


@pytest.mark.parametrize("form", list(FeedFormat))
@pytest.mark.parametrize(
    "key", [None, b"abc", b"\xff", b"{", {"id": None}, {"id": []}, b'{"id":1180591620717411303424}', b"[" * 5000]
)
def test_a_record_without_a_key_is_left_out_with_its_reason(form: str, key: Any) -> None:
    for value in (None, b"{", b"\xff", b"[]", b"null"):
        reason = said(decoder(form), key, value)
        assert isinstance(reason, str)
        assert reason.startswith("offset 7: no key (id) can be read in ")


def test_upserts_name_their_keys() -> None:
    reader = decoder("json")
    assert said(reader, None, {"id": 1, "name": "pen"}) == {1: None}
    assert said(reader, b"1", {"name": "pen"}) == {1: None}
    assert said(reader, b"1", {"id": 2}) == {1: None, 2: None}
    assert said(reader, b"1", b"{damaged") == {1: None}
    assert said(reader, b"1", None) == {1: None}


ROW = {"id": 1, "name": "pen", "price": "1.50", "stock": 3}
STORED = ((1, "pen", Decimal("1.50")),)


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        (b"1", ROW, {1: STORED}),
        ({"id": 1}, ROW, {1: STORED}),
        (b"1", {**ROW, "name": None}, {1: ((1, "unknown", Decimal("1.50")),)}),
        (b"1", {"name": "pen", "price": 1.5}, {1: STORED}),
        (b"1", None, {1: ()}),
        # Without a Kafka key of its own, an older row of the key may come later.
        (None, ROW, {1: None}),
        ({"id": 1, "region": "eu"}, ROW, {1: None}),
        (b"2", ROW, {1: None, 2: None}),
        ({"id": 1, "region": "eu"}, None, {1: None}),
        # Incomplete, of another type, a row that is taken back.
        (b"1", {"id": 1, "name": "pen"}, {1: None}),
        (b"1", {**ROW, "price": "much"}, {1: None}),
        (b"1", {**ROW, "name": ["pen"]}, {1: None}),
        (b"1", {**ROW, "_tp_delta": -1}, {1: None}),
    ],
)
def test_a_complete_row_of_fitting_types_is_stored(key: Any, value: Any, found: dict[Key, Rows | None]) -> None:
    assert said(decoder("json", stores=True), key, value) == found


def test_a_null_where_none_may_be_spoils_its_own_row_only() -> None:
    columns = (Column("id", pa.int64()), Column("name", pa.string(), nullable=False))
    reader = decoder("json", stores=True, columns=columns)
    changes = reader.decode(0, [(n, b"%d" % n, written({"id": n, "name": name})) for n, name in enumerate(["a", None])])
    assert changes.by_key == {0: Change(0, ((0, "a"),)), 1: Change(1, None)}


def envelope(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"table": "products"}, "ts_ms": 1}


OLD = {**ROW, "name": "quill"}
CHANGES = [
    ("c", None, ROW, {1: None}, {1: STORED}),
    ("r", None, ROW, {1: None}, {1: STORED}),
    ("u", OLD, ROW, {1: None}, {1: STORED}),
    ("u", {**OLD, "id": 2}, ROW, {1: None, 2: None}, {1: STORED, 2: None}),
    ("d", ROW, None, {1: None}, {1: ()}),
    ("d", {**ROW, "id": 2}, None, {1: None, 2: None}, {1: None, 2: None}),
    ("t", None, None, "all", "all"),
    ("m", None, None, {}, {}),
    ("?", None, ROW, {1: None}, {1: None}),
]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(("op", "before", "after", "forgotten", "stored"), CHANGES)
def test_debezium(op: str, before: Any, after: Any, forgotten: Any, stored: Any, *, wrapped: bool) -> None:
    key, value = {"id": 1}, envelope(op, before, after)
    if wrapped:
        key, value = ({"schema": {"type": "struct"}, "payload": part} for part in (key, value))  # type: ignore[assignment]
    assert said(decoder("debezium"), key, value) == forgotten
    assert said(decoder("debezium", stores=True), key, value) == stored


def test_debezium_takes_the_key_from_where_it_stands() -> None:
    reader = decoder("debezium", stores=True)
    assert said(reader, {"pk": 9}, envelope("u", {**OLD, "id": 2}, ROW)) == {1: None, 2: None}
    assert said(reader, None, envelope("d", ROW)) == {1: None}
    assert said(reader, {"id": 1}, None) == {1: ()}
    assert said(reader, {"id": 1}, b"{damaged") == {1: None}
    assert "no key" in said(reader, {"pk": 9}, envelope("d"))


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (pa.string(), "__debezium_unavailable_value", None),
        (pa.decimal128(10, 2), "1234", None),
        (pa.decimal128(10, 2), "12.34", Decimal("12.34")),
        (pa.decimal128(10, 2), 12.34, Decimal("12.34")),
        (pa.decimal128(30, 2), 12345678901234.56, None),
        (pa.string(), 19_000, None),
        (pa.date32(), 19_000, None),
        (pa.timestamp("ms", "UTC"), 1_700_000_000_000, None),
        (pa.timestamp("ms", "UTC"), "2026-01-02T00:00:00Z", datetime(2026, 1, 2, tzinfo=UTC)),
        (pa.binary(), "AB12", None),
        (pa.list_(pa.int64()), [1], None),
        (pa.bool_(), 1, True),
        (pa.bool_(), 2, None),
        (pa.int8(), 300, None),
        (pa.int64(), "1234", None),
        (pa.float64(), 1, 1.0),
    ],
)
def test_a_value_of_debezium_that_can_be_read_in_two_ways_is_asked_for(
    kind: pa.DataType, value: Any, read: Any
) -> None:
    reader = decoder("debezium", stores=True, columns=(Column("id", pa.int64()), Column("v", kind)))
    rows = None if read is None else ((1, read),)
    assert said(reader, {"id": 1}, envelope("c", None, {"id": 1, "v": value})) == {1: rows}


def test_the_last_word_on_a_key_holds_and_bad_records_are_counted() -> None:
    reader = decoder("json", stores=True)
    changes = reader.decode(
        3, [(3, b"1", written(ROW)), (4, b"2", None), (6, None, b"?"), (7, b"1", None), (9, None, b"!")]
    )
    assert list(changes.by_key.items()) == [(2, Change(4, ())), (1, Change(7, ()))]
    assert (changes.start, changes.end, changes.records, changes.rejected) == (3, 10, 5, 2)
    assert changes.reason == "offset 6: no key (id) can be read in b'?'"


# -- where reading goes on


@pytest.mark.parametrize(
    ("held", "first", "end", "start"),
    [
        ({}, 0, 10, None),
        ({0: 4}, 0, 10, 4),
        ({0: 10}, 10, 10, 10),
        ({0: 4}, 5, 10, None),  # deleted before they were read
        ({0: 11}, 0, 10, None),  # another topic of the name
        ({1: 3}, 0, 10, 0),  # a partition that was made later
        ({0: 0}, 0, LONGEST_CATCH_UP + 1, None),
    ],
)
def test_reading_goes_on_where_nothing_is_missed(held: dict[int, int], first: int, end: int, start: int | None) -> None:
    assert resume_offsets(held, {0: first}, {0: end}) == (None if start is None else {0: start})


# -- in the caches


def changed(*keys: Key, start: int = 0, **rows: str) -> SourceChanges:
    """One record for each key, to be forgotten or (``rows``) with its name."""
    words: dict[Key, Rows | None] = dict.fromkeys(keys) | {key: ((key, name),) for key, name in rows.items()}
    by_key = {key: Change(start + at, found) for at, (key, found) in enumerate(words.items())}
    return SourceChanges(start, start + len(words), len(words), by_key)


def test_a_process_without_redis_keeps_its_hot_tier_fresh() -> None:
    source = FakeSource()
    source.put(a="pen", b="ink", c="cap")
    hybrid = Hybrid(definition(), source, None)
    hybrid.begin_feed("t", {0: 0})
    hybrid.lookup(["a", "b", "c"], NOW_MS)
    source.put(a="quill")
    hybrid.apply_feed("t", 0, changed("a", b="blot"), NOW_MS)
    assert names(hybrid.lookup(["a", "b", "c"], NOW_MS)) == ["quill", "blot", "cap"]
    assert source.fetched_keys == ["a", "b", "c", "a"]
    figures = hybrid.statistics()
    assert [figures[f"feed_{name}"] for name in ("records", "invalidated", "stored", "rejected")] == [2, 1, 1, 0]
    hybrid.close()


def test_what_was_fetched_before_a_change_is_not_stored_after_it() -> None:
    source = FakeSource()
    source.put(a="pen", b="ink")
    hybrid = Hybrid(definition(), source, None)
    source.before = lambda keys: hybrid.apply_feed("t", 0, changed("a", b="blot"), NOW_MS)
    hybrid.lookup(["a", "b"], NOW_MS)
    source.before = lambda keys: None
    source.put(a="quill")
    assert names(hybrid.lookup(["a", "b"], NOW_MS)) == ["quill", "blot"]
    hybrid.close()


def test_a_table_that_was_emptied_is_forgotten() -> None:
    source = FakeSource()
    source.put(a="pen")
    hybrid = Hybrid(definition(), source, None)
    hybrid.lookup(["a"], NOW_MS)
    source.rows.clear()
    hybrid.apply_feed("t", 0, SourceChanges(0, 1, 1, is_whole=True), NOW_MS)
    assert hybrid.lookup(["a"], NOW_MS) == [()]
    hybrid.close()


def test_a_loaded_dictionary_fetches_the_changed_keys() -> None:
    source = FakeSource()
    source.put(a="pen", b="ink")
    loaded = Loaded(definition("hashed"), source)
    loaded.begin_feed("t", {0: 0})
    loaded.apply_feed("t", 0, changed("a"), NOW_MS)
    assert (source.loads, source.fetched) == (0, [])
    loaded.lookup(["a"], NOW_MS)
    source.put(a="quill", b="blot")
    loaded.apply_feed("t", 0, changed("a", start=1), NOW_MS)
    assert names(loaded.lookup(["a", "b"], NOW_MS)) == ["quill", "ink"]
    assert source.fetched == [["a"]]
    loaded.close()
