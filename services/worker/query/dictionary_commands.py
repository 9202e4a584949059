"""Commands, executed on the dictionaries that this process has open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.changelog.errors import DovetailError
from dovetail.dictionaries.contracts import Layout
from dovetail.dictionaries.key_reader import KeyReader
from dovetail.dictionaries.wall_clock import wall_clock_ms
from dovetail.services.commands.command_codec import (
    Command,
    JsonObject,
    Misses,
    Outcome,
    Refresh,
    Stats,
    UnknownCommand,
)


@dataclass(frozen=True)
class DictionaryCommands:
    """``layouts`` and ``key_readers``: by dictionary. One that is not open here holds nothing to forget."""

    layouts: Mapping[str, Layout]
    key_readers: Mapping[str, KeyReader]

    def execute(self, command: Command) -> Outcome:
        try:
            match command:
                case Refresh():
                    return Outcome(True, self._refresh(command))
                case Stats():
                    return Outcome(True, self._stats(command))
                case Misses():
                    return Outcome(True, self._misses(command))
                case UnknownCommand():
                    return Outcome.failed(f"there is no command {command.name!r}")
        except (DovetailError, ValueError, TypeError) as failure:
            return Outcome.failed(str(failure))

    def _refresh(self, command: Refresh) -> JsonObject:
        layout = self.layouts.get(command.dictionary)
        if layout is None:
            return {"invalidated": 0}
        read = self.key_readers[command.dictionary].read
        keys = None if command.keys is None else [read(key) for key in command.keys]
        return {"invalidated": layout.invalidate(keys, command.prefix, command.id)}

    def _stats(self, command: Stats) -> JsonObject:
        wanted = command.dictionary
        open_here = [(name, layout) for name, layout in self.layouts.items() if wanted in (None, name)]
        return {"dictionaries": [{**layout.statistics(), "name": name} for name, layout in open_here]}

    def _misses(self, command: Misses) -> JsonObject:
        """``place`` of the key in the command, since when and for how long it is known to be absent, in ms."""
        layout = self.layouts.get(command.dictionary)
        if layout is None:
            return {"misses": []}
        keys = [self.key_readers[command.dictionary].read(key) for key in command.keys]
        now_ms = wall_clock_ms()
        found = enumerate(map(layout.misses(keys, now_ms).get, keys))
        return {
            "misses": [
                {"place": place, "asked_ms_ago": now_ms - miss[0], "left_ms": miss[1] - now_ms}
                for place, miss in found
                if miss is not None
            ]
        }
