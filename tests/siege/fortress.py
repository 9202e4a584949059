"""``dovetail serve`` as a process under a bound of memory; each file and address that it opens is written down."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dovetail.runtime.packages import PACKAGE_ROOT
from tests.servers.process import program

_MEMORY_BYTES = 4 << 30
_START_S = 60.0
_STOP_S = 30.0
_TRACED = "trace=open,openat,openat2,creat,connect,execve"
_CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ADDRESS = re.compile(r'sin6?_port=htons\((\d+)\).*?"([^"]+)"')


@dataclass(frozen=True)
class Fortress:
    """A server at ``address``.

    folder  its data folder
    trace   what the kernel was asked for, a call on each line
    """

    address: str
    folder: Path
    trace: Path
    process: subprocess.Popen[bytes]

    def mark(self) -> int:
        """A place in the trace: what it asks for from now on comes after it."""
        return self.trace.stat().st_size

    def requested_since(self, mark: int) -> Iterator[tuple[str, str]]:
        """Each call since ``mark``: its name, and a path, or an address as ``host:port``."""
        with self.trace.open("rb") as lines:
            lines.seek(mark)
            for line in lines.read().decode(errors="replace").splitlines():
                found = _CALL.match(line)
                if found is None:
                    continue
                name, arguments = found.groups()
                if name == "connect":
                    if address := _ADDRESS.search(arguments):
                        yield name, f"{address[2]}:{address[1]}"
                elif path := _PATH.search(arguments):
                    yield name, path[1].encode().decode("unicode_escape", errors="replace")

    def trespasses(self, mark: int, *, addresses: frozenset[str]) -> set[tuple[str, str]]:
        """What it asked for since ``mark`` outside of its data folder and its own program, or at other addresses."""
        return {(name, what) for name, what in self.requested_since(mark) if not self._is_meant(name, what, addresses)}

    def _is_meant(self, name: str, what: str, addresses: frozenset[str]) -> bool:
        """Of programs it starts its own Python alone: protoc is a module of it."""
        match name:
            case "connect":
                return what in addresses
            case "execve":
                return what == sys.executable
            case _:
                return self._is_own(what)

    def _is_own(self, path: str) -> bool:
        whole = os.path.normpath(self.folder / path)
        if whole == str(PACKAGE_ROOT) or _ABOUT_PROCESSES.fullmatch(whole):
            return True
        return any(whole == place or whole.startswith(f"{place}/") for place in (str(self.folder), *_PROGRAM))


_PROGRAM = (
    *dict.fromkeys(
        str(path) for prefix in (sys.prefix, sys.base_prefix) for path in (Path(prefix), Path(prefix).resolve())
    ),
    str(PACKAGE_ROOT / "dovetail"),
    *("/lib", "/lib64", "/usr/lib", "/usr/share/zoneinfo", "/sys"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf"),
    *("/etc/gai.conf", "/etc/passwd", "/etc/ssl", "/usr/share/locale", "/dev/null", "/dev/urandom"),
)
"""Its own code, that of its libraries, and what the C library reads by itself."""


_ABOUT_PROCESSES = re.compile(
    r"/proc/(self|\d+)/(stat|status|statm|maps|cgroup|mountinfo)|/proc/(meminfo|stat|cpuinfo|sys/vm/overcommit_memory)"
)


@contextmanager
def fortress(folder: Path, outside: Path, **settings: object) -> Iterator[Fortress]:
    """A running server over the catalog in ``folder``; it is started in ``outside``, which is not its own."""
    trace, log = folder.parent / "trace", folder.parent / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOVETAIL_")}
    environment |= {f"DOVETAIL_{name.upper()}": str(value) for name, value in settings.items()}
    environment |= {
        "DOVETAIL_DATA_DIR": str(folder),
        "PYTHONPATH": str(PACKAGE_ROOT),
        "PYTHONSAFEPATH": "1",
        "TMPDIR": str(folder),
    }
    strace = program("strace", package="strace")
    # They are one group: strace, told to end by itself, would leave the server running.
    command = [strace, "-f", "--seccomp-bpf", "-s", "4096", "-e", _TRACED, "-e", "signal=none", "-o", str(trace)]
    command += [sys.executable, "-m", "dovetail.services.serve"]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=outside,
            env=environment,
            stdout=said,
            stderr=said,
            preexec_fn=_bounded,  # noqa: PLW1509
            start_new_session=True,
        )
    try:
        yield Fortress(_address(process, log), folder, trace, process)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_S
    while True:
        said = log.read_text(errors="replace")
        if found := re.search(r"listening at (http://[\d.:]+)", said):
            return found[1]
        assert process.poll() is None, said[-2000:]
        assert time.monotonic() < deadline, said[-2000:]
        time.sleep(0.05)
