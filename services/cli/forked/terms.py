"""What a forked command must know of the process that stands for it, beyond its arguments and environment."""

from __future__ import annotations

import io
import json
import signal
import sys
from dataclasses import asdict, dataclass

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals to the process that stands for a command are the command's."""


@dataclass(frozen=True)
class TextStream:
    """How a standard stream is read or written as text."""

    encoding: str
    errors: str
    line_buffering: bool
    write_through: bool


@dataclass(frozen=True)
class Terms:
    """streams  standard input, output and error
    ignored     of FORWARDED: those that have no effect
    """

    streams: tuple[TextStream, ...]
    ignored: tuple[int, ...]

    @staticmethod
    def of_this_process() -> Terms | None:
        """None where a standard stream is closed, or is none of the interpreter's own."""
        streams = [_described(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)]
        ignored = tuple(int(number) for number in FORWARDED if signal.getsignal(number) is signal.SIG_IGN)
        found = tuple(stream for stream in streams if stream is not None)
        return Terms(found, ignored) if len(found) == len(streams) else None

    def packed(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def unpacked(line: bytes) -> Terms:
        fields = json.loads(line)
        return Terms(tuple(TextStream(**stream) for stream in fields["streams"]), tuple(fields["ignored"]))


def _described(stream: object) -> TextStream | None:
    if not isinstance(stream, io.TextIOWrapper):
        return None
    return TextStream(stream.encoding, stream.errors or "strict", stream.line_buffering, stream.write_through)
