"""Podman, where there is no engine of Docker: real containers, on a base image and beside servers of Debian's packages.

It has all that it makes in one folder. Whatever ``docker-compose.yml`` says of a service is an option of its container.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.image.base_image import make_base
from tests.image.compose_file import Service, seconds
from tests.image.container_options import container_options
from tests.image.engine import PROJECT, Engine, EngineFailed, run
from tests.paths import ROOT

PACKAGES = ("catatonit", "containernetworking-plugins", "debootstrap", "iptables", "podman", "runc")
_PROGRAMS = ("catatonit", "debootstrap", "iptables", "podman", "runc")
_BASE = "localhost/base:test"
_STAND_INS = Path(__file__).with_name("stand_ins")


def missing_programs() -> list[str]:
    return [name for name in _PROGRAMS if shutil.which(name) is None]


class Podman(Engine):
    """folder  where it keeps images, volumes and containers, some gigabytes, which ``remove`` deletes; of a short name,
    as Podman needs it
    """

    def __init__(self, variables: Mapping[str, str], folder: Path) -> None:
        places = {"root": "storage", "runroot": "run", "tmpdir": "tmp", "network-config-dir": "networks"}
        tool = ["podman", "--runtime=runc", "--cgroup-manager=cgroupfs", "--events-backend=file"]
        super().__init__((*tool, *(f"--{option}={folder / name}" for option, name in places.items())), variables)
        self._folder = folder
        # More than this machine lets its own processes have, it cannot give to a container.
        numbers = int(Path("/proc/sys/kernel/pid_max").read_text())
        most = {
            "nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
            "nproc": min(resource.getrlimit(resource.RLIMIT_NPROC)[1], numbers),
        }
        self._limits = [f"--ulimit={name}={count}:{count}" for name, count in most.items()]

    def build(self) -> None:
        root, packed = self._folder / "base", self._folder / "base.tar"
        make_base(root)
        run("tar", f"--directory={root}", "--create", f"--file={packed}", ".")
        run(*self.tool, "import", "--quiet", str(packed), _BASE)
        shutil.rmtree(root)
        packed.unlink()
        how, image = self.built["build"], self.built["image"]
        self._build(ROOT / how["context"], how["dockerfile"], image, f"--from={_BASE}")
        arguments = [f"--build-arg=BASE={_BASE}", f"--build-arg=DOVETAIL={image}"]
        for name, service in self.services.items():
            if not self.is_own(name):
                self._build(_STAND_INS, "Dockerfile", service["image"], f"--target={name}", "--layers", *arguments)

    def _build(self, context: Path, dockerfile: str, image: str, *options: str) -> None:
        # In a plain chroot with the host's network, as apt and pip of the host are set up.
        place = ["--isolation=chroot", "--network=host", *self._limits, "--pull=never"]
        words = [f"--tag={image}", f"--file={context / dockerfile}", *options]
        run(*self.tool, "build", "--quiet", *place, *words, str(context))

    def up(self) -> None:
        run(*self.tool, "network", "create", PROJECT)
        [gateway] = run(
            *self.tool, "network", "inspect", "--format", "{{range .Subnets}}{{.Gateway}}{{end}}", PROJECT
        ).split()
        subnet = gateway.rpartition(".")[0]
        addresses = {name: f"{subnet}.{number}" for number, name in enumerate(self.services, start=10)}
        hosts = [f"--add-host={name}:{address}" for name, address in addresses.items()]
        healthy: set[str] = set()
        for name, service in self.services.items():
            self._await_healthy([needed for needed in service.get("depends_on", {}) if needed not in healthy])
            healthy.update(service.get("depends_on", {}))
            place = [f"--name={self.container(name)}", f"--network={PROJECT}", f"--ip={addresses[name]}", *hosts]
            options = [*place, *self._limits, *container_options(service)]
            run(*self.tool, "run", "--detach", "--pull=never", *options, service["image"], *service.get("command", []))
        self._await_healthy([name for name in self.services if name not in healthy])

    def _await_healthy(self, names: Iterable[str]) -> None:
        for name in names:
            self._await_check(name, self.services[name]["healthcheck"])

    def _await_check(self, name: str, check: Service) -> None:
        """Ask as often as the check says. Failures count after its start period, as in Docker."""
        started_s, failures = time.monotonic(), 0
        while failed := self._failure_of(name, check):
            failures += time.monotonic() - started_s > seconds(check.get("start_period", "0s"))
            if failures >= check["retries"]:
                raise EngineFailed(f"{name} is not healthy: {failed}\n{self.log(name)}")
            time.sleep(seconds(check["interval"]))

    def _failure_of(self, name: str, check: Service) -> str:
        """What a check said that failed, or nothing."""
        kind, *words = check["test"]
        command = ["/bin/sh", "-c", *words] if kind == "CMD-SHELL" else words
        try:
            done = subprocess.run(
                [*self.tool, "exec", self.container(name), *command],
                capture_output=True, text=True, check=False, timeout=seconds(check["timeout"]),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {check['timeout']}"
        return done.stdout + done.stderr + f"exit code {done.returncode}" if done.returncode else ""

    def stop(self) -> None:
        for name in reversed(self.services):
            run(*self.tool, "stop", self.container(name))

    def kill(self) -> None:
        run(*self.tool, "kill", *(self.container(name) for name in self.services))

    def down(self) -> None:
        run(*self.tool, "rm", "--force", "--all", "--time=1")
        run(*self.tool, "network", "rm", "--force", PROJECT)

    def remove(self) -> None:
        self.down()
        # What is outside of the folder: the addresses that were given out.
        shutil.rmtree(f"/var/lib/cni/networks/{PROJECT}", ignore_errors=True)
        # Of a build that was ended half-way, mounts are left: folders of this machine, which must not be emptied.
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for place in reversed([place for place in mounts if Path(place).is_relative_to(self._folder)]):
            run("umount", "--lazy", place)
        run("rm", "--recursive", "--force", "--one-file-system", str(self._folder))

    def container(self, service: str) -> str:
        return f"{PROJECT}-{service}"
