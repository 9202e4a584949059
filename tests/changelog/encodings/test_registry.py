"""The list of formats, and how statements name them."""

from __future__ import annotations

from collections import Counter

import pytest

from dovetail.changelog.encodings.interface import Reads
from dovetail.changelog.encodings.registry import FORMATS, reader
from dovetail.changelog.encodings.settings import value_format
from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import JSON, RecordFormat, StreamSchema


def test_a_name_means_one_format() -> None:
    names = [name for kind in FORMATS for name in {*kind.data_format, *kind.encode}]
    assert [name for name, times in Counter(names).items() if times > 1] == []
    assert [name for name in names if name != name.lower()] == []


@pytest.mark.parametrize("settings", [{}, {"data_format": "JSONEachRow"}, {"encode": "json"}, {"encode": "a word"}])
def test_nothing_said_is_json(settings: dict[str, object]) -> None:
    assert value_format(settings) == JSON


def test_an_unknown_kind_is_told() -> None:
    with pytest.raises(InternalError, match="unknown format 'x'"):
        reader(Reads(RecordFormat("x"), StreamSchema("s", ()), ()))
