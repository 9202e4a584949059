"""The wait between two looks at the catalog."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dovetail.runtime.wanted import WantedWatch
from dovetail.sql.catalog import Catalog
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream

_LONG_S = 60.0


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog.open(f"sqlite:///{tmp_path}/catalog.db")


def test_it_ends_with_a_wish_and_not_again_for_the_same(catalog: Catalog) -> None:
    watch = WantedWatch(catalog)
    statement = parse_one("CREATE STREAM s (k int)")
    assert isinstance(statement, CreateStream)
    threading.Timer(0.1, lambda: catalog.create(statement, now_ms=0)).start()
    begun_s = time.monotonic()
    assert not watch.wait(threading.Event(), _LONG_S)
    assert time.monotonic() - begun_s < _LONG_S / 2
    assert not watch.wait(threading.Event(), 0.05)


@pytest.mark.parametrize("in_memory", [False, True])
def test_it_ends_with_the_order_to_stop(catalog: Catalog, *, in_memory: bool) -> None:
    watch, stopped = WantedWatch(Catalog.open("sqlite://") if in_memory else catalog), threading.Event()
    threading.Timer(0.1, stopped.set).start()
    assert watch.wait(stopped, _LONG_S)


def test_it_lasts_no_longer_than_a_look_may_wait(catalog: Catalog) -> None:
    assert not WantedWatch(catalog).wait(threading.Event(), 0.05)
