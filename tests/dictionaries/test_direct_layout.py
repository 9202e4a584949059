"""DIRECT: nothing is kept."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import LookupRejected
from dovetail.dictionaries.layouts.direct import Direct
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names


def test_every_lookup_asks_the_source() -> None:
    source = FakeSource()
    source.put(a="pen")
    direct = Direct(definition("direct"), source)
    assert names(direct.lookup(["a", "x"], NOW_MS)) == ["pen", None]
    source.put(a="quill")
    assert names(direct.lookup(["a"], NOW_MS)) == ["quill"]
    assert direct.lookup([], NOW_MS) == []
    assert direct.invalidate() == 0
    figures = direct.statistics()
    assert (figures["query_count"], figures["misses"], figures["hit_rate"], figures["source_keys"]) == (3, 3, 0.0, 3)


@pytest.mark.parametrize(("policy", "raised"), [("stop", ServiceUnavailable), ("dead_letter", LookupRejected)])
def test_a_source_that_is_down_is_said(policy: str, raised: type[Exception]) -> None:
    direct = Direct(definition("direct", on_error=policy), FakeSource(is_down=True))
    with pytest.raises(raised):
        direct.lookup(["a"], NOW_MS)


def test_a_source_that_is_down_counts_as_absence_under_null() -> None:
    direct = Direct(definition("direct", on_error="null"), FakeSource(is_down=True))
    assert direct.lookup(["a", "b"], NOW_MS) == [(), ()]
    assert direct.statistics()["failed_keys"] == 2
