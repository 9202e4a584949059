"""How far a view is, on a terminal and elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console

from dovetail.services.cli.following.backfill_bar import follow_backfill
from dovetail.services.cli.show import Screen
from dovetail.services.session.live.backlog import Backlog

STEPS = (Backlog(0, 4_000), Backlog(1_000, 4_000), Backlog(3_000, 5_000), Backlog(5_000, 5_000))


@pytest.fixture(autouse=True)
def _cursor_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def screen(*, terminal: bool) -> tuple[Screen, StringIO]:
    shown, made = StringIO(), Screen(output=StringIO())
    made.notes = Console(file=shown, force_terminal=terminal, width=100)
    return made, shown


def followed(*steps: Backlog, terminal: bool = True, goes_on: bool = True) -> str:
    left: Iterator[Backlog] = iter(steps)

    def look() -> Backlog:
        found = next(left, None)
        if found is None:
            raise KeyboardInterrupt
        return found

    made, shown = screen(terminal=terminal)
    follow_backfill(made, "v", look, lambda: goes_on)
    return shown.getvalue()


def test_a_terminal_has_a_bar_until_the_view_has_caught_up() -> None:
    shown = followed(*STEPS)
    assert "/4000" in shown
    assert "5000/5000" in shown
    assert "records" in shown
    assert "v has caught up, in 1 s" in shown


def test_ctrl_c_ends_the_bar_and_not_the_view() -> None:
    shown = followed(*STEPS[:2])
    assert "v goes on; SHOW VIEWS says how far it is" in shown
    assert "caught up" not in shown


def test_a_view_that_is_not_to_run_is_not_waited_for() -> None:
    assert "RESUME v" in followed(*STEPS[:1], goes_on=False)


def test_elsewhere_it_is_a_line() -> None:
    assert followed(STEPS[1], terminal=False) == "v has 3,000 records to read; SHOW VIEWS says how far it is\n"


def test_so_it_is_where_no_cursor_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert "v has 3,000 records to read" in followed(STEPS[1])


def test_without_history_nothing_is_said() -> None:
    assert followed(Backlog()) == ""
    assert followed(Backlog(5, 5), terminal=False) == ""
