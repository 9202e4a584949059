"""What a forked command runs: ``dovetail`` with the arguments of the process that stands for it."""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import time

from dovetail.services.cli import main as command_line
from dovetail.services.cli.forked import loaded_code
from dovetail.services.cli.forked.client import TERMS_AT
from dovetail.services.cli.forked.terms import FORWARDED, Terms
from dovetail.services.stack.processes import hide_from_stack


def main() -> None:
    terms = _terms()
    # What ends with the stack are its components; a command may go on.
    hide_from_stack()
    if loaded_code.has_changed():
        os.execv(sys.executable, [sys.executable, "-P", "-m", "dovetail.services.cli.main", *sys.argv[1:]])
    _take(terms)
    command_line.main()


def _terms() -> Terms:
    """Ends the process where none come: whoever wanted the command has given it up."""
    with socket.socket(fileno=TERMS_AT) as sender, sender.makefile("rb") as lines:
        line = lines.readline()
    if not line.endswith(b"\n"):
        os._exit(1)
    return Terms.unpacked(line)


def _take(terms: Terms) -> None:
    """Be as the process that stands for this one: its zone, its signals, its texts."""
    time.tzset()
    for order in FORWARDED:
        signal.signal(order, signal.SIG_IGN if order in terms.ignored else signal.SIG_DFL)
    if signal.SIGINT not in terms.ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    streams = []
    for number, mode, stream in zip((0, 1, 2), ("rb", "wb", "wb"), terms.streams, strict=True):
        # The interpreter's own may hold what its server has read.
        raw = open(number, mode, closefd=False)  # noqa: SIM115 - for the rest of the process
        newline = None if mode == "rb" else "\n"
        streams.append(
            io.TextIOWrapper(raw, stream.encoding, stream.errors, newline, stream.line_buffering, stream.write_through)
        )
    sys.stdin, sys.stdout, sys.stderr = streams


if __name__ == "__main__":
    main()
