"""One process does the work, another refuses; one that was away too long learns of it."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from dovetail.changelog.errors import ServiceUnavailable, StackError
from dovetail.runtime.sole_holder import LEASE_S, SoleHolder
from dovetail.sql.catalog import Catalog, Leadership
from dovetail.sql.catalog.metadata_tables import engine_for
from tests.services.worker.lanes import until

FAR_MS = 1 << 60
NOW_MS = 1_704_110_400_000
DAY_MS = 86_400_000
HOST = socket.gethostname()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    yield opened
    opened.close()


def held_by(catalog: Catalog, holder: str, until_ms: int = FAR_MS) -> Leadership:
    return catalog.take_leadership(Leadership("spark", holder, until_ms), now_ms=0)


def unexpected(why: str) -> None:
    raise AssertionError(f"the lease was not lost: {why}")


class Clock:
    """A monotonic clock that moves when somebody pauses; a holder that lives says something else in each pause."""

    def __init__(self, *said_ms: int) -> None:
        self.now_s = 0.0
        self._said_ms = iter(said_ms)
        self.renew: Callable[[int], None] = lambda until_ms: None

    def __call__(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds
        for until_ms in itertools.islice(self._said_ms, 1):
            self.renew(until_ms)


def tried(catalog: Catalog, held: Leadership, clock: Clock) -> SoleHolder:
    """A second process, which the first does not know of."""

    def renew(until_ms: int) -> None:
        assert catalog.renew_leadership(held, until_ms)

    clock.renew = renew
    return SoleHolder(catalog, "spark", "running it", unexpected, clock, clock.pause)


@pytest.mark.parametrize("holder", ["elsewhere:1", f"{HOST}:{os.getppid()}"], ids=["elsewhere", "of this host"])
@pytest.mark.parametrize(
    "said_ms", [NOW_MS + 2_000, NOW_MS + DAY_MS, NOW_MS - DAY_MS], ids=["in time", "set forward", "set back"]
)
def test_a_second_one_refuses_and_names_the_first(catalog: Catalog, holder: str, said_ms: int) -> None:
    """The first renews, be it with a time of day that was set a day forward or back meanwhile."""
    held = held_by(catalog, holder, NOW_MS)
    clock = Clock(said_ms)

    with pytest.raises(StackError, match=f"another process is running it: {holder}") as refused:
        tried(catalog, held, clock)

    assert "end that one first" in refused.value.fix
    assert clock.now_s < LEASE_S


@pytest.mark.parametrize("until_ms", [NOW_MS - DAY_MS, NOW_MS + DAY_MS], ids=["behind", "ahead"])
def test_one_that_is_silent_is_gone_whatever_its_clock_was(catalog: Catalog, until_ms: int) -> None:
    held = held_by(catalog, "elsewhere:1", until_ms)
    clock = Clock()

    holder = tried(catalog, held, clock)

    lease = catalog.leadership("spark")
    assert lease is not None
    assert lease.epoch == held.epoch + 1
    assert LEASE_S < clock.now_s < 2 * LEASE_S
    holder.release()


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
    lost = Losses()
    holder = SoleHolder(catalog, "spark", "running it", lost)
    catalog.take_leadership(Leadership("spark", "elsewhere:1", FAR_MS), now_ms=FAR_MS + 1)
    assert lost.wait(30)
    assert "another process has taken it over" in lost.why
    holder.release()
    assert catalog.leadership("spark") == Leadership("spark", "elsewhere:1", FAR_MS, 2)


class Losses(threading.Event):
    why = ""

    def __call__(self, why: str) -> None:
        self.why = why
        self.set()


class CutOff(Catalog):
    """A catalog that this process does not reach."""

    writes = reads = True

    def renew_leadership(self, held: Leadership, until_ms: int) -> bool:
        if not self.writes:
            raise ServiceUnavailable("cut off")
        return super().renew_leadership(held, until_ms)

    def leadership(self, name: str) -> Leadership | None:
        if not self.reads:
            raise ServiceUnavailable("cut off")
        return super().leadership(name)


def test_one_that_cannot_reach_the_catalog_ends_before_another_one_begins(catalog: Catalog, tmp_path: Path) -> None:
    cut_off = CutOff(engine_for(make_url(f"sqlite:///{tmp_path / 'catalog.db'}")))
    lost, begun_s = Losses(), time.monotonic()
    holder = SoleHolder(cut_off, "spark", "running it", lost)
    cut_off.writes = cut_off.reads = False
    assert lost.wait(2 * LEASE_S)
    assert time.monotonic() - begun_s < LEASE_S
    assert "could not be reached" in lost.why
    holder.release()


def test_one_that_reads_that_the_lease_is_its_own_goes_on_where_nothing_can_be_written(
    catalog: Catalog, tmp_path: Path
) -> None:
    cut_off = CutOff(engine_for(make_url(f"sqlite:///{tmp_path / 'catalog.db'}")))
    lost, clock = Losses(), Clock()
    holder = SoleHolder(cut_off, "spark", "running it", lost, clock, clock.pause)
    cut_off.writes = False
    for _ in range(3):
        clock.now_s += LEASE_S - 2
        until(lambda: holder._sure_s == clock.now_s)  # noqa: SLF001
    assert not lost.is_set()
    assert catalog.take_leadership(Leadership("spark", "elsewhere:1", FAR_MS), now_ms=FAR_MS + 1).epoch == 2
    assert lost.wait(30)
    holder.release()


def test_a_process_of_the_same_name_and_number_may_be_another_container(catalog: Catalog) -> None:
    held = held_by(catalog, f"{HOST}:{os.getpid()}", NOW_MS)
    with pytest.raises(StackError):
        tried(catalog, held, Clock(NOW_MS + 2_000))
