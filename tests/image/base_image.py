"""The base image of ``docker/Dockerfile``, made of Debian's packages, for Podman without Docker.

It has what ``python:<version>-slim-<release>`` has: Debian without recommendations, and ``python`` and ``pip`` first on
the path, in ``/usr/local``. The Python is the one of that release of Debian. apt and pip are set up as on the host,
with the certificates that it has besides Debian's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT

_CERTIFICATES = Path("usr/local/share/ca-certificates")
_PIP_KEYS = {"cert", "extra-index-url", "index-url", "proxy", "timeout", "trusted-host"}


def release() -> str:
    """The release of Debian that the Dockerfile builds on."""
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    [found] = re.findall(r"^FROM python:3\.11\.\d+-slim-(\w+)$", dockerfile, re.MULTILINE)
    return str(found)


def make_base(root: Path) -> None:
    """The file system of the image, in the folder ``root``, which must not exist. Needs debootstrap, and to be root."""
    sources = _sources()
    mirror = next(line.split()[1] for line in sources if line.split()[2] == release())
    packages = "--include=ca-certificates,python3,python3-venv"
    # In namespaces of its own: what it starts and mounts ends with it, also where it is ended half-way.
    alone = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    _run(*alone, "debootstrap", "--variant=minbase", packages, release(), str(root), mirror)
    (root / "etc/apt/sources.list").write_text("\n".join(sources) + "\n")
    (root / "etc/apt/apt.conf.d/80from-outside").write_text(_run("apt-config", "dump", "Acquire"))
    shutil.copytree(Path("/") / _CERTIFICATES, root / _CERTIFICATES, dirs_exist_ok=True)
    _run("chroot", str(root), "update-ca-certificates")
    _run("chroot", str(root), "python3", "-m", "venv", "/usr/local")
    _configure_pip(root)


def _sources() -> list[str]:
    """The lines of apt for the release, its updates and its fixes."""
    line_of = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    targets = _run("apt-get", "indextargets", "Created-By: Packages", "--format", line_of)
    wanted = {release(), f"{release()}-updates", f"{release()}-security"}
    found = sorted({line for line in targets.splitlines() if line.split()[2] in wanted})
    assert any(line.split()[2] == release() for line in found), f"apt of this machine has no packages of {release()}"
    return found


def _configure_pip(root: Path) -> None:
    listed = re.findall(r"^\S+\.([\w-]+)='(.*)'$", _run(sys.executable, "-m", "pip", "config", "list"), re.MULTILINE)
    settings = {key: value for key, value in listed if key in _PIP_KEYS}
    if "cert" in settings:
        inside = root / settings["cert"].lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(settings["cert"], inside)
    lines = ["[global]", *(f"{key} = {value}" for key, value in settings.items())]
    (root / "etc/pip.conf").write_text("\n".join(lines))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
