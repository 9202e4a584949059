"""Commands that other tools have: what is typed here in their place, rather than what is spelled most like them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

OTHERS: Mapping[str, str] = {
    **dict.fromkeys(("start", "init", "create"), "dovetail up"),
    **dict.fromkeys(("stop", "kill", "destroy"), "dovetail down"),
    "restart": "dovetail down, and dovetail up",
    **dict.fromkeys(("ps", "list", "info", "health"), "dovetail status"),
    **dict.fromkeys(("query", "exec", "execute", "client", "shell", "console", "cli"), "dovetail sql -c 'SELECT 1'"),
    **dict.fromkeys(("topics", "topic"), "dovetail sql -c 'SHOW TOPICS'"),
    **dict.fromkeys(("streams", "tables"), "dovetail sql -c 'SHOW STREAMS'"),
    "views": "dovetail sql -c 'SHOW VIEWS'",
    "queries": "dovetail sql -c 'SHOW QUERIES'",
    **dict.fromkeys(("apply", "deploy", "migrate"), "dovetail run file.sql"),
    **dict.fromkeys(("consume", "read", "watch", "follow", "print"), "dovetail tail v"),
    **dict.fromkeys(("produce", "load", "import", "write"), "dovetail insert s rows.csv"),
    "explain": "dovetail sql -c 'EXPLAIN SELECT ..'",
    "config": "dovetail docs configuration",
    **dict.fromkeys(("quickstart", "quick-start", "tutorial", "guide"), "dovetail docs quick-start"),
    "help": "dovetail --help; dovetail docs reads the documentation",
}
"""Word -> what to type."""


class Commands(TyperGroup):
    """A group of commands that knows those of other tools."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0] if args else ""
        if word in OTHERS and self.get_command(ctx, word) is None:
            ctx.fail(f'there is no command "{word}": {OTHERS[word]}')
        return super().resolve_command(ctx, args)
