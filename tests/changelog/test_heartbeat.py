"""Heartbeats that queries write: the watermark that they tell, and what is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.formats.heartbeat import HEADER, heartbeat, said


@given(watermark=st.integers(-(10**17), 10**17))
def test_a_heartbeat_says_its_watermark(watermark: int) -> None:
    message = heartbeat(watermark)
    assert not message["key"]
    assert message["value"] is None
    assert said(dict(message["headers"])) == watermark


def test_a_record_that_says_no_number_is_taken_by_its_timestamp() -> None:
    for value in (b"", b"soon", b"1.5", b"9" * 19, b"\xff", None):
        assert said({HEADER: value}) is None
    assert said({}) is None
    assert said({"dovetail.replayed": b"12"}) is None
