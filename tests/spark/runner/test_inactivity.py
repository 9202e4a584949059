"""A batch hangs where it is old and nobody works; not while somebody does, nor before long."""

from __future__ import annotations

import pytest

from dovetail.runtime.processes.processor_time import used_by_this_process_and_its_own
from dovetail.spark_jobs.runner.inactivity import Inactivity


class Machine:
    """A clock, and processor time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.used_s = 0.0

    def run(self, inactivity: Inactivity, seconds: int, cores: float) -> None:
        for _ in range(seconds // 5):
            self.now_s += 5
            self.used_s += 5 * cores
            inactivity.look()


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def inactivity(machine: Machine) -> Inactivity:
    return Inactivity(lambda: machine.used_s, lambda: machine.now_s)


def test_an_old_batch_that_nobody_works_on_hangs(machine: Machine, inactivity: Inactivity) -> None:
    machine.run(inactivity, 60, cores=1)
    machine.run(inactivity, 700, cores=0.01)
    assert inactivity.hangs(700)


def test_one_that_somebody_works_on_does_not(machine: Machine, inactivity: Inactivity) -> None:
    machine.run(inactivity, 7_200, cores=0.5)
    assert not inactivity.hangs(7_200)
    machine.run(inactivity, 60, cores=0)
    assert not inactivity.hangs(7_260)


def test_a_young_one_does_not(machine: Machine, inactivity: Inactivity) -> None:
    machine.run(inactivity, 3_600, cores=0)
    assert not inactivity.hangs(300)


def test_processes_that_end_take_their_time_with_them(machine: Machine, inactivity: Inactivity) -> None:
    machine.run(inactivity, 3_000, cores=0)
    machine.used_s -= 10
    machine.run(inactivity, 60, cores=0)
    assert not inactivity.hangs(3_060)


def test_the_time_of_this_process_is_part_of_it() -> None:
    before = used_by_this_process_and_its_own()
    sum(range(5_000_000))
    assert used_by_this_process_and_its_own() > before > 0
