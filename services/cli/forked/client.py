"""A command as the process that a person starts sees it: forked elsewhere, with this one's terminal, folder,
environment and signals. This process stands for it until its end.

    this process → server    ``Request``: arguments, folder, environment; the three standard streams, and a socket
    this process → command   over the socket: ``Terms``. A command that does not get them does nothing, so that one
                             whose server has failed to answer, and is run here instead, is not run twice
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from dovetail.runtime.processes import interpreters
from dovetail.runtime.processes.forked import LOST, Forked, Request
from dovetail.services.cli.forked.terms import FORWARDED, Terms

COMMAND = "dovetail.services.cli.forked.command"
TERMS_AT = 3
"""The number of the socket in the command."""
_UNKNOWN = 1
_ANSWER_S = 3.0
"""A server that takes longer to fork stands still, or its machine nearly does."""


def run(arguments: Sequence[str]) -> int | None:
    """The end code of the command; None where nobody forks it, and nothing has been done."""
    terms = Terms.of_this_process()
    if terms is None or not hasattr(os, "pidfd_open"):
        return None
    for address in interpreters.addresses():
        with suppress(OSError):
            command = _Command.start(address, arguments, terms)
            break
    else:
        return None
    return command.end_code()


@dataclass(frozen=True)
class _Command:
    """descriptor  of the process, by which it is signalled, and its end seen, whatever has become of its server"""

    process: Forked
    descriptor: int

    @staticmethod
    def start(address: str, arguments: Sequence[str], terms: Terms) -> _Command:
        """Raises OSError where it was not started."""
        request = Request(COMMAND, tuple(arguments), str(Path.cwd()), dict(os.environ), (0, 1, 2, TERMS_AT))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = Forked(address, request, (0, 1, 2, theirs.fileno()), _ANSWER_S)
            command = _Command(process, os.pidfd_open(process.pid))
            command.forward_signals(terms)
            ours.sendall(terms.packed())
        return command

    def forward_signals(self, terms: Terms) -> None:
        for number in {*FORWARDED, signal.SIGWINCH} - {*terms.ignored}:
            signal.signal(number, self._forward)
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            signal.signal(signal.SIGTSTP, self._pause)

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, number)

    def _pause(self, _number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: both stop, and go on when this process is told to."""
        self._forward(signal.SIGSTOP, frame)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._forward(signal.SIGCONT, frame)

    def end_code(self) -> int:
        """Once it has ended."""
        code = self.process.wait()
        if code == LOST and not self._has_ended(0):
            # The stack has gone, and the command has not: nobody will say how it ends.
            self._has_ended(None)
            return _UNKNOWN
        assert code is not None
        return code if code >= 0 else 128 - code

    def _has_ended(self, timeout_ms: int | None) -> bool:
        waiting = select.poll()
        waiting.register(self.descriptor, select.POLLIN)
        return bool(waiting.poll(timeout_ms))
