"""The console script ``dovetail``.

Where a stack of this user runs, most commands are forked from an interpreter of it, which has imported what they need:
so this imports next to nothing. Else, and for those that start and stop the stack itself, it is done here.
"""

# ruff: noqa: PLC0415 - what runs the command here is imported where it does

from __future__ import annotations

import gc
import locale
import os
import sys
from collections.abc import Sequence

_OF_THIS_PROCESS = frozenset({"up", "down", "demo", "worker", "serve", "lsp"})


def main() -> None:
    os.umask(0o077)
    arguments = sys.argv[1:]
    if may_be_forked(arguments):
        from dovetail.services.cli.forked import client

        code = client.run(arguments)
        if code is not None:
            sys.exit(code)
    # A fourth of the time of a short command would go into looking through its imports for garbage.
    gc.set_threshold(100_000)
    from dovetail.services.cli.main import main as run_here

    run_here()


def may_be_forked(arguments: Sequence[str]) -> bool:
    """Files are read in the encoding of the interpreter, which is UTF-8 in that of a stack."""
    of_here = bool(arguments) and arguments[0] in _OF_THIS_PROCESS
    return not of_here and locale.getencoding().lower() in ("utf-8", "utf8")


if __name__ == "__main__":
    main()
