"""The interpreters of this user's running stacks, from which commands are forked.

    <state of the user>/interpreters/<installation>/<pid> → the socket at which it forks

An installation is the code and the Python that runs it: another one's interpreter would run another command. What is
written down is where to look, and may be of a stack that was killed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dovetail.runtime.environment.user_state import user_state
from dovetail.runtime.packages import PACKAGE_ROOT
from dovetail.runtime.processes.forked import READY

_NAMESPACES = ("mnt", "net", "pid", "user")


def announce(pid: int, address: str) -> None:
    """Have commands forked at ``address``, by the process ``pid``, once it is ready. Nothing where the home of the user
    cannot be written to.
    """
    with suppress(OSError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f".{pid}"
        partial.unlink(missing_ok=True)
        partial.symlink_to(address)
        partial.replace(folder / str(pid))


def withdraw(pid: int) -> None:
    with suppress(OSError):
        (_folder() / str(pid)).unlink(missing_ok=True)


def addresses() -> Iterator[str]:
    """Where a command of this installation may be forked: by processes of the same user that see the same files,
    network and processes as this one, and have imported all.
    """
    with suppress(OSError):
        for link in sorted(_folder().iterdir()):
            with suppress(OSError, ValueError):
                address = link.readlink()
                is_own = address.stat().st_uid == os.geteuid() and _sees_the_same(int(link.name))
                if is_own and address.with_name(READY).exists():
                    yield str(address)


def _sees_the_same(pid: int) -> bool:
    """Raises OSError where it has gone, or is another user's."""
    its, own = Path("/proc", str(pid), "ns"), Path("/proc/self/ns")
    return all((its / name).readlink() == (own / name).readlink() for name in _NAMESPACES)


def _folder() -> Path:
    installation = repr((sys.executable, sys.version, str(PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")))
    return user_state() / "interpreters" / hashlib.sha256(installation.encode()).hexdigest()[:16]
