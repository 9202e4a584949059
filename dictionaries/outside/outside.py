"""The world outside of Dovetail, as far as statements may name it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dovetail.dictionaries.outside.files import Folder
from dovetail.dictionaries.outside.hosts import Hosts

MAX_BYTES = 256 << 20
_SECRETS = Path("/run/secrets")


@dataclass(frozen=True)
class Outside:
    """
    folder     below it are the files that statements name; a relative path begins here
    secrets    beside it, of passwords and certificates: a folder of mounted secrets
    hosts      where sources may be, cut by commas or blanks; '': anywhere, but where ``Hosts`` says never
    max_bytes  largest file, and largest answer of a web service, unpacked
    """

    folder: Path
    secrets: Path = _SECRETS
    hosts: str = ""
    max_bytes: int = MAX_BYTES

    @cached_property
    def files(self) -> Folder:
        return Folder(self.folder, self.secrets, self.max_bytes)

    @cached_property
    def network(self) -> Hosts:
        return Hosts.of(self.hosts)
