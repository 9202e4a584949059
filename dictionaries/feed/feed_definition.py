"""The feed of a dictionary: a topic of the changes at its source, read so that caches need not wait for their TTL.

    SETTINGS(feed_topic = 'shop.products', feed_format = 'debezium', feed_values = true)

    format     Kafka key                     value                                       tombstone
    key        the key                       ignored; without a Kafka key, the key       -
    json       the key, or none              an object with the columns                  the key was deleted
    debezium   the table's key, or none      an envelope, with or without its schema     the key was deleted

A key is a text, or JSON: a value, an object of the key columns, for several of them also an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.suggest import suggestion
from dovetail.dictionaries.definition.definition import Definition

_CACHES = ("cache", "hybrid_hash_cache")


class FeedFormat(StrEnum):
    KEY = "key"
    JSON = "json"
    DEBEZIUM = "debezium"


@dataclass(frozen=True)
class Feed:
    """``stores``: rows that records carry go into the cache; otherwise their keys are asked for at the source."""

    topic: str
    format: FeedFormat
    stores: bool


def feed_of(definition: Definition) -> Feed | None:
    """The feed that is declared; None: none is.

    Raises SqlError for a format that there is not, or without a topic; Unsupported where the layout keeps nothing, or
    records cannot carry the dictionary's rows.
    """
    settings, where = definition.settings, f'dictionary "{definition.name}", SETTINGS'
    topic = str(settings.get("feed_topic", ""))
    if not topic:
        for name in ("feed_topic", "feed_format", "feed_values"):
            if name in settings:
                raise SqlError(f"{name} names no topic", where=where, fix="feed_topic = 'topic of the changed keys'")
        return None
    given = str(settings.get("feed_format", FeedFormat.KEY)).lower()
    if given not in list(FeedFormat):
        raise UnknownName(f'there is no feed_format "{given}"', where=where, fix=suggestion(given, FeedFormat))
    feed = Feed(topic, FeedFormat(given), bool(settings.get("feed_values", False)))
    _check_layout(definition, where)
    if feed.stores:
        _check_stores(definition, feed, where)
    return feed


def _check_layout(definition: Definition, where: str) -> None:
    kind = definition.layout.kind
    if kind == "direct":
        raise Unsupported(
            "LAYOUT(DIRECT()) keeps nothing that a feed could keep fresh",
            where=where,
            fix="leave feed_topic out, or LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'name'))",
        )
    if kind == "mutable_cache":
        raise Unsupported(
            "LAYOUT(MUTABLE_CACHE(..)) has a stream, and takes no other feed",
            where=where,
            fix="write the changes into its STREAM, or LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'name'))",
        )


def _check_stores(definition: Definition, feed: Feed, where: str) -> None:
    if feed.format is FeedFormat.KEY:
        raise SqlError("keys carry no values", where=where, fix="feed_format = 'json' or 'debezium'")
    if definition.layout.kind not in _CACHES:
        raise Unsupported(
            f"LAYOUT({definition.layout.kind.upper()}()) takes keys from a feed, and no values",
            where=where,
            fix="feed_values = false, or LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'name'))",
        )
    if definition.expressions or definition.source.parameters.keys() & {"query", "where"}:
        raise Unsupported(
            "a record carries the row of the table, not what QUERY, WHERE or EXPRESSION make of it",
            where=where,
            fix="feed_values = false",
        )
