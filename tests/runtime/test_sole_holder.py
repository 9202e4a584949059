"""One process does the work, another refuses; one that was away too long learns of it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from changelog.errors import StackError
from runtime.sole_holder import SoleHolder
from sql.catalog import Catalog, Leadership

FAR_MS = 1 << 60
HOST = socket.gethostname()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    yield opened
    opened.close()


def held_by(catalog: Catalog, holder: str) -> None:
    catalog.take_leadership(Leadership("spark", holder, FAR_MS), now_ms=0)


def unexpected() -> None:
    raise AssertionError("the lease was not lost")


def test_a_second_one_refuses_and_names_the_first(catalog: Catalog) -> None:
    held_by(catalog, "elsewhere:1")
    with pytest.raises(StackError, match="another process is running it: elsewhere:1"):
        SoleHolder(catalog, "spark", "running it", unexpected)


def test_a_living_process_of_this_host_keeps_it(catalog: Catalog) -> None:
    held_by(catalog, f"{HOST}:{os.getppid()}")
    with pytest.raises(StackError, match=f"{HOST}:{os.getppid()}"):
        SoleHolder(catalog, "spark", "running it", unexpected)


def test_that_of_a_killed_process_of_this_host_is_taken_at_once(catalog: Catalog) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    held_by(catalog, f"{HOST}:{child}")
    SoleHolder(catalog, "spark", "running it", unexpected).release()


def test_what_is_given_back_is_free(catalog: Catalog) -> None:
    first = SoleHolder(catalog, "spark", "running it", unexpected)
    first.release()
    held_by(catalog, "elsewhere:1")
    lease = catalog.leadership("spark")
    assert lease is not None
    assert (lease.holder, lease.epoch) == ("elsewhere:1", 2)


def test_one_that_was_away_for_too_long_learns_of_it(catalog: Catalog) -> None:
    lost = threading.Event()
    holder = SoleHolder(catalog, "spark", "running it", lost.set)
    catalog.take_leadership(Leadership("spark", "elsewhere:1", FAR_MS), now_ms=FAR_MS)
    assert lost.wait(30)
    holder.release()
    assert catalog.leadership("spark") == Leadership("spark", "elsewhere:1", FAR_MS, 2)
