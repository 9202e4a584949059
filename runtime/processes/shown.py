"""What the kernel shows others of a process that was forked and not executed: by itself, what its parent began with."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_ARGUMENTS, _ENVIRONMENT = 45, 47
"""Where /proc/self/stat says where they begin in memory; the next number is their end. Counted from the state on."""


def show_command(command: Sequence[str]) -> None:
    """Be listed with this command line, as far as there is room for it: as much as the parent's own takes."""
    with suppress(OSError):
        begin, end = _place(_ARGUMENTS)
        shown = b"".join(word.encode() + b"\0" for word in command)[: end - begin - 1]
        ctypes.memmove(begin, shown.ljust(end - begin, b"\0"), end - begin)


def show_variable(name: str, value: str) -> None:
    """Have a variable of the environment that the parent began with shown with ``value``, as long as its own."""
    with suppress(OSError):
        begin, end = _place(_ENVIRONMENT)
        block = ctypes.string_at(begin, end - begin)
        start = (b"\0" + block).find(f"\0{name}=".encode())
        if start < 0:
            return
        start += len(name) + 1
        if block.find(b"\0", start) - start == len(value.encode()):
            ctypes.memmove(begin + start, value.encode(), len(value.encode()))


def _place(field: int) -> tuple[int, int]:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[field]), int(fields[field + 1])
