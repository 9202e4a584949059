"""Commands, as one process executes them on the dictionaries that it has open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from changelog.errors import DovetailError
from dictionaries.contracts import Layout


def executed(command: Mapping[str, Any], layouts: Mapping[str, Layout]) -> dict[str, Any]:
    """``{"ok", "detail"}``. A dictionary that is not open here holds nothing to forget."""
    execute = _COMMANDS.get(str(command.get("command")))
    if execute is None:
        return {"ok": False, "detail": {"error": f"there is no command {command.get('command')!r}"}}
    try:
        return {"ok": True, "detail": execute(command, layouts)}
    except (DovetailError, ValueError, TypeError) as failure:
        return {"ok": False, "detail": {"error": str(failure)}}


def _refresh(command: Mapping[str, Any], layouts: Mapping[str, Layout]) -> dict[str, Any]:
    layout = layouts.get(str(command.get("dictionary")))
    if layout is None:
        return {"invalidated": 0}
    keys = command.get("keys")
    asked = None if keys is None else [tuple(key) if isinstance(key, list) else key for key in keys]
    return {"invalidated": layout.invalidate(asked, command.get("prefix"), str(command.get("id", "")))}


def _stats(command: Mapping[str, Any], layouts: Mapping[str, Layout]) -> dict[str, Any]:
    wanted = command.get("dictionary")
    chosen = {name: layout for name, layout in layouts.items() if wanted in (None, name)}
    return {"dictionaries": [{**layout.statistics(), "name": name} for name, layout in chosen.items()]}


_COMMANDS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Layout]], dict[str, Any]]] = {
    "refresh": _refresh,
    "stats": _stats,
}
