"""Commands to the lookup workers, and their answers, each a JSON object in a topic (docs/topics.md).

    dovetail.commands         {"id", "command": "refresh", "dictionary", "keys", "prefix"} | {"id", "command": "stats"}
    dovetail.command-results  {"id", "worker", "ok", "detail"}

A command is for every worker. Its ``id`` names it: a worker that gets the same command again changes nothing more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

COMMANDS = "dovetail.commands"
RESULTS = "dovetail.command-results"


@dataclass(frozen=True)
class Command:
    """``refresh`` of a dictionary: of some keys, of those that begin with ``prefix``, or of all; or ``stats``."""

    name: str
    dictionary: str | None = None
    keys: Sequence[Any] | None = None
    prefix: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def value(self) -> bytes:
        members: dict[str, Any] = {"id": self.id, "command": self.name}
        if self.dictionary is not None:
            members |= {"dictionary": self.dictionary}
        if self.name == "refresh":
            members |= {"keys": None if self.keys is None else list(self.keys), "prefix": self.prefix}
        return json.dumps(members, ensure_ascii=False, default=str).encode()


@dataclass(frozen=True)
class Answer:
    """What a worker said of a command."""

    worker: str
    ok: bool
    detail: Mapping[str, Any]

    @property
    def error(self) -> str:
        return "" if self.ok else str(self.detail.get("error", "it gave no reason"))

    @staticmethod
    def read(value: bytes, command_id: str) -> Answer | None:
        """None for what is no answer to this command: anybody may write to the topic."""
        try:
            members = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(members, dict) or members.get("id") != command_id:
            return None
        detail = members.get("detail")
        return Answer(
            str(members.get("worker", "")), bool(members.get("ok")), detail if isinstance(detail, dict) else {}
        )
