"""``python -m MODULE ARGUMENT...``, as Spark asks for it, from the fork server of the session.

This process stands for the one that is forked: it ends with it, and a signal that ends this one ends that one as well.
It imports next to nothing, so it is run with ``-I -S``: in a few hundredths of a second, where a worker that imports
for itself takes the better part of one. Where the server does not answer, that is what is started.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(os.path.normpath(__file__)).parents[2]))

from dovetail.runtime.processes.forked import Forked, Request


def forked(arguments: Sequence[str]) -> Forked | None:
    """None where there is no module to run, or nobody to fork it."""
    if arguments[:1] != ["-m"]:
        return None
    request = Request(arguments[1], tuple(arguments[2:]), str(Path.cwd()), dict(os.environ))
    try:
        return Forked(os.environ["DOVETAIL_FORK_SERVER"], request, (0, 1, 2))
    except OSError:
        return None


def main() -> int:
    process = forked(sys.argv[1:])
    if process is None:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    code = process.wait()
    assert code is not None
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main())
