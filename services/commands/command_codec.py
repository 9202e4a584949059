"""Commands and answers as values, and as the JSON objects that travel, in topics and between a worker's processes.

    dovetail.commands         {"id", "command": "refresh", "dictionary", "keys", "prefix"} | {"id", "command": "stats"}
                              | {"id", "command": "misses", "dictionary", "keys"}
    dovetail.command-results  {"id", "worker", "ok", "detail"}

A command is for every worker. Its ``id`` names it: a worker that gets the same command again changes nothing more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

JsonObject = Mapping[str, Any]
_REFRESH = "refresh"
_STATS = "stats"
_MISSES = "misses"


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Refresh:
    """Forget what is cached of a dictionary: some keys, those that begin with ``prefix``, or all.

    keys   a value each, or a tuple of values for a key of several columns
    """

    dictionary: str
    keys: Sequence[Any] | None = None
    prefix: str | None = None
    id: str = field(default_factory=_new_id)


@dataclass(frozen=True)
class Stats:
    """Say how the dictionaries do: one, or all that are open."""

    dictionary: str | None = None
    id: str = field(default_factory=_new_id)


@dataclass(frozen=True)
class Misses:
    """Say of which of some keys it is cached that a dictionary does not have them, and for how long."""

    dictionary: str
    keys: Sequence[Any]
    id: str = field(default_factory=_new_id)


@dataclass(frozen=True)
class UnknownCommand:
    """What somebody has called a command; it is answered, too."""

    name: str
    id: str = field(default_factory=_new_id)


Command = Refresh | Stats | Misses | UnknownCommand


@dataclass(frozen=True)
class Outcome:
    """What came of a command. ``detail``: figures by name, or ``error``, the reason why nothing did."""

    ok: bool
    detail: JsonObject

    @staticmethod
    def failed(reason: str) -> Outcome:
        return Outcome(False, {"error": reason})

    @property
    def error(self) -> str:
        return "" if self.ok else str(self.detail.get("error", "it gave no reason"))


@dataclass(frozen=True)
class Answer:
    """What one worker said of a command."""

    command_id: str
    worker: str
    outcome: Outcome


class CommandHandler(Protocol):
    """Whatever executes commands: a worker, by asking its processes; a process, on what it has open."""

    def execute(self, command: Command) -> Outcome: ...


# -- commands


def command_bytes(command: Command) -> bytes:
    return json.dumps(_command_members(command), ensure_ascii=False, default=_text).encode()


def _text(value: Any) -> str:
    """A value that JSON has not, as the worker reads it by the type of its column."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _command_members(command: Command) -> JsonObject:
    match command:
        case Refresh():
            return {
                "id": command.id,
                "command": _REFRESH,
                "dictionary": command.dictionary,
                "keys": None if command.keys is None else list(command.keys),
                "prefix": command.prefix,
            }
        case Stats():
            one = {} if command.dictionary is None else {"dictionary": command.dictionary}
            return {"id": command.id, "command": _STATS, **one}
        case Misses():
            return {
                "id": command.id,
                "command": _MISSES,
                "dictionary": command.dictionary,
                "keys": list(command.keys),
            }
        case UnknownCommand():
            return {"id": command.id, "command": command.name}


def command_of(value: bytes) -> Command | None:
    """None for what is no command: anybody may write to the topic."""
    members = _object(value)
    if members is None or not isinstance(members.get("id"), str):
        return None
    name, dictionary = members.get("command"), members.get("dictionary")
    if name == _REFRESH:
        keys = members.get("keys")
        refreshed = [_key(key) for key in keys] if isinstance(keys, list) else keys
        return Refresh(str(dictionary), refreshed, members.get("prefix"), members["id"])
    if name == _MISSES and isinstance(members.get("keys"), list):
        return Misses(str(dictionary), [_key(key) for key in members["keys"]], members["id"])
    if name == _STATS:
        return Stats(dictionary, members["id"])
    return UnknownCommand(str(name), members["id"])


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


# -- outcomes and answers


def outcome_bytes(outcome: Outcome) -> bytes:
    return orjson.dumps(_outcome_members(outcome), default=str)


def outcome_of(value: bytes) -> Outcome:
    """Raises ValueError for what is none."""
    members = _object(value)
    if members is None:
        raise ValueError(f"no outcome of a command: {value[:100]!r}")
    return _outcome(members)


def answer_bytes(answer: Answer) -> bytes:
    members = {"id": answer.command_id, "worker": answer.worker, **_outcome_members(answer.outcome)}
    return orjson.dumps(members, default=str)


def answer_of(value: bytes) -> Answer | None:
    """None for what is no answer: anybody may write to the topic."""
    members = _object(value)
    if members is None or not isinstance(members.get("id"), str):
        return None
    return Answer(members["id"], str(members.get("worker", "")), _outcome(members))


def _outcome_members(outcome: Outcome) -> JsonObject:
    return {"ok": outcome.ok, "detail": outcome.detail}


def _outcome(members: JsonObject) -> Outcome:
    detail = members.get("detail")
    return Outcome(bool(members.get("ok")), detail if isinstance(detail, dict) else {})


def _object(value: bytes) -> JsonObject | None:
    try:
        members = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return members if isinstance(members, dict) else None
