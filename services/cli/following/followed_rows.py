"""Rows that come one after the other, as the mode of the screen shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dovetail.services.cli.following.rows_on_screen import RowsOnScreen
from dovetail.services.cli.row_format import Mode
from dovetail.services.cli.show import ChangelogLines, Screen
from dovetail.services.session import Changelog


@contextmanager
def followed(screen: Screen, changelog: Changelog, wide: Sequence[str] = ()) -> Iterator[ChangelogLines | RowsOnScreen]:
    """Takes them. The current rows can be drawn again where a cursor moves: elsewhere there are always the changes."""
    if screen.mode is Mode.TABLE and screen.is_terminal and not screen.console.is_dumb_terminal:
        with RowsOnScreen(screen, changelog.schema, changelog.stream, wide) as rows:
            yield rows
    else:
        yield screen.changelog(changelog.schema, wide)
