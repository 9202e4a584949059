"""The list of long files holds what is there, and their tests come first."""

from __future__ import annotations

import random

import pytest

from tests.long_files import LONGEST_FIRST, SHARING_A_STACK, rank, scope
from tests.paths import ROOT


def test_each_is_there_once() -> None:
    assert [name for name in LONGEST_FIRST if not (ROOT / name).exists()] == []
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)


def test_a_folder_shares_a_stack_where_its_fixture_is_of_the_folder() -> None:
    made = [path.parent for path in (ROOT / "tests").rglob("conftest.py") if '"package"' in path.read_text()]
    assert {str(folder.relative_to(ROOT)) for folder in made} == set(SHARING_A_STACK)


def test_who_shares_a_stack_is_run_by_one_process() -> None:
    assert scope("tests/docs/test_tasks.py::test_a[x::y]") == scope("tests/docs/test_state.py::test_b") != ""
    session = [scope(str(file.relative_to(ROOT))) for file in (ROOT / "tests/services/session").glob("test_*.py")]
    assert len(set(session)) == SHARING_A_STACK["tests/services/session"] < len(session)
    assert scope("tests/docs/deeper/test_a.py::test_a") == "tests/docs/deeper/test_a.py"
    assert scope("tests/broker/test_a.py::TestB::test_c") == "tests/broker/test_a.py"


@pytest.mark.parametrize("seed", range(5))
def test_they_come_first_and_the_others_stay_in_their_order(seed: int) -> None:
    others = [ROOT / "tests" / name for name in ("b.py", "a.py", "chaos/test_kill.py", "test_services.py")]
    long = [ROOT / name for name in LONGEST_FIRST]
    mixed = random.Random(seed).sample(long, len(long))
    assert sorted([*others, *mixed], key=rank) == [*long, *others]
