"""``python -m tests.image``: the image of ``docker/Dockerfile``, built and run as ``docker-compose.yml`` says.

All containers are stopped and made again, over the same volumes, then killed and made again. At the end nothing is
left; only an engine of Docker keeps the images. Exit code 0: built, healthy, right, and ended when told to; 1: not, and
why; 2: neither Docker nor what stands in for it is on this machine.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from dovetail.services.stack.free_ports import choose_ports
from tests.image.compose_file import port_variables
from tests.image.docker import Docker, docker_answers
from tests.image.engine import KILLED, Engine, EngineFailed
from tests.image.podman import PACKAGES, Podman, missing_programs
from tests.image.scenario import AFTER_A_CUT, AFTER_AN_END, BEFORE, Scenario

_PASSWORDS = ("DOVETAIL_MYSQL_PASSWORD", "DOVETAIL_MYSQL_ROOT_PASSWORD", "DOVETAIL_CLICKHOUSE_PASSWORD")
_ODD = "p@ss/w:rd#%41 $x\\"
"""Of characters that mean something in addresses, to a shell and to Compose."""


def main() -> int:
    started_s = time.monotonic()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(f"ended by signal {number}"))

    def say(line: str) -> None:
        print(f"{time.monotonic() - started_s:7.1f} s  {line}", flush=True)

    if not docker_answers() and (missing := missing_programs()):
        print(f"no engine of Docker with Compose answers, and there is no {', '.join(missing)}; as root on Debian run:")
        print(f"apt-get install --no-install-recommends {' '.join(PACKAGES)}")
        return 2
    with _engine(_variables()) as engine:
        say(f"built and run by {type(engine).__name__}")
        try:
            _run(engine, say)
        except (AssertionError, EngineFailed, httpx.HTTPError) as failure:
            say(f"FAILED: {failure}")
            for name in engine.services:
                print(f"--- the end of the log of {name}\n{engine.log(name)}", flush=True)
            return 1
    say("all as expected, and nothing left")
    return 0


def _run(engine: Engine, say: Callable[[str], None]) -> None:
    engine.build()
    say("the image is built")
    scenario = Scenario(engine, say)
    _up(engine, say)
    scenario.prepare()
    scenario.play(BEFORE)
    _stop(engine, say)
    engine.down()
    _up(engine, say)
    scenario.play(AFTER_AN_END)
    engine.kill()
    engine.down()
    _up(engine, say)
    scenario.play(AFTER_A_CUT)
    _stop(engine, say)


def _up(engine: Engine, say: Callable[[str], None]) -> None:
    engine.up()
    say(f"healthy: {', '.join(engine.services)}")


def _stop(engine: Engine, say: Callable[[str], None]) -> None:
    engine.stop()
    endings = {name: engine.ending(name) for name in engine.services}
    assert not any(one.restarts for one in endings.values()), f"a container was started again: {endings}"
    for name, ending in endings.items():
        # What Dovetail runs ends well; of others it is enough that nobody had to kill them.
        well = ending.exit_code == 0 if engine.is_own(name) else ending.exit_code != KILLED
        assert well, f"{name} ended with exit code {ending.exit_code}"
    say("all have ended within their period of grace")


def _variables() -> Mapping[str, str]:
    """Free ports, odd passwords, and sources on no other host."""
    names = port_variables()
    ports = dict(zip(names, map(str, choose_ports(*[0] * len(names))), strict=True))
    return {**ports, **dict.fromkeys(_PASSWORDS, _ODD), "DOVETAIL_SOURCE_HOSTS": "mysql,clickhouse"}


@contextmanager
def _engine(variables: Mapping[str, str]) -> Iterator[Engine]:
    """Docker where it answers, else Podman; all that it made is removed at the end."""
    engine = Docker(variables) if docker_answers() else Podman(variables, _new_folder())
    try:
        yield engine
    finally:
        engine.remove()


def _new_folder() -> Path:
    # On a disk, which /tmp may not be.
    return Path(tempfile.mkdtemp(prefix="dovetail-", dir="/var/tmp"))


if __name__ == "__main__":
    sys.exit(main())
