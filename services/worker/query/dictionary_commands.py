"""Commands, executed on the dictionaries that this process has open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from changelog.errors import DovetailError
from dictionaries.contracts import Layout
from dictionaries.key_reader import KeyReader
from services.commands.command_codec import Command, JsonObject, Outcome, Refresh, Stats, UnknownCommand


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
