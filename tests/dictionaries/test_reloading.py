"""A dictionary that is loaded as a whole, when its source meets a defect."""

from __future__ import annotations

from contextlib import closing

from dovetail.dictionaries.layouts.loaded import Loaded
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names, settle


def test_a_dictionary_is_loaded_again_after_a_defect_of_its_source() -> None:
    source = FakeSource()
    source.put(a="pen")
    with closing(Loaded(definition("hashed", lifetime_s=(0, 1)), source)) as loaded:
        assert names(loaded.lookup(["a"], NOW_MS)) == ["pen"]
        rows, source.rows = source.rows, None  # type: ignore[assignment]  # what no source gives
        settle(lambda: loaded.statistics()["thread_failures"] > 0)
        assert loaded.statistics()["threads_failing"] == 1
        source.rows = rows
        source.put(a="quill")
        settle(lambda: names(loaded.lookup(["a"], NOW_MS)) == ["quill"])
        settle(lambda: loaded.statistics()["threads_failing"] == 0)
