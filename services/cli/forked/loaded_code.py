"""Whether the code of this process is that on disk: a command runs what is installed, not what was when the stack came
up. To be imported behind all that is meant.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

Versions = dict[str, tuple[int, int]]


def _files() -> Iterable[str]:
    """Those of the modules of Dovetail, and the folder whose entries are the installed libraries."""
    yield sysconfig.get_path("purelib")
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.partition(".")[0] == "dovetail":
            yield file


def _versions(files: Iterable[str]) -> Versions:
    """File → when it was changed, in nanoseconds, and its length. Raises OSError where one is gone."""
    found = {}
    for file in files:
        status = Path(file).stat()
        found[file] = (status.st_mtime_ns, status.st_size)
    return found


_AS_LOADED = _versions(_files())


def has_changed() -> bool:
    try:
        return _versions(_AS_LOADED) != _AS_LOADED
    except OSError:
        return True
