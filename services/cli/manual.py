"""``dovetail docs``, and ``help`` with a word in the console."""

from __future__ import annotations

import os

from rich.markdown import Markdown

from dovetail.services.cli.show import Screen
from dovetail.services.manual import Listing, manual


def show_manual(screen: Screen, words: str) -> None:
    """What ``services.manual`` has of ``words``. Raises what that raises."""
    found = manual(words)
    if isinstance(found, Listing):
        for name, title in found.entries:
            screen.line(f"{name:24}{title}")
        screen.note(found.note)
    else:
        _show(screen, found)


def _show(screen: Screen, text: str) -> None:
    """Set on a terminal, in its pager; elsewhere as it is written."""
    if not screen.is_terminal:
        screen.line(text)
        return
    # As git has it: colours, and no pager for what fits on the screen.
    os.environ.setdefault("LESS", "-FRX")
    with screen.console.pager(styles=True):
        screen.console.print(Markdown(text))
