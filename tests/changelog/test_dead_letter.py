"""A rejected record keeps its bytes and gains headers."""

from __future__ import annotations

import pyarrow as pa

from changelog.dead_letter import DeadLetter, dead_letters, topic_of
from changelog.decode import Decoder
from changelog.schema import Column, StreamSchema
from tests.changelog.records import records


def test_a_dead_letter_keeps_the_bytes_and_names_place_reason_and_query() -> None:
    decoded = Decoder(StreamSchema("s", (Column("k", pa.int64()),)), ("k",)).decode(
        records([b'{"k":1}', b'{"k":"\xff"}'], [None, b"\x00"], partition=2)
    )

    (letter,) = dead_letters(decoded.rejected, topic="clicks", query="joined")

    assert letter == DeadLetter(
        b"\x00",
        b'{"k":"\xff"}',
        (
            ("dovetail.topic", b"clicks"),
            ("dovetail.partition", b"2"),
            ("dovetail.offset", b"1"),
            ("dovetail.reason", b"the value is not UTF-8"),
            ("dovetail.query", b"joined"),
        ),
    )
    assert topic_of("joined") == "joined.dead_letter"
