"""The code of Dovetail as executors on other machines get it: one zip, which Spark carries to each and unpacks.

So every executor runs what the driver runs, and nothing of Dovetail is installed there; the libraries are.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dovetail.runtime.packages import PACKAGE_ROOT

SHIPPED = ("broker", "changelog", "joins", "runtime", "spark_jobs", "sql")
"""The layer of the stages, and those that it imports from."""


@dataclass(frozen=True)
class ShippedCode:
    """Source files by their path in the zip."""

    files: Mapping[str, bytes]

    @staticmethod
    def of_this_process() -> ShippedCode:
        package = PACKAGE_ROOT / "dovetail"
        sources = sorted(
            [package / "__init__.py", *(path for layer in SHIPPED for path in (package / layer).rglob("*.py"))]
        )
        return ShippedCode({str(path.relative_to(PACKAGE_ROOT)): path.read_bytes() for path in sources})

    @property
    def folder(self) -> str:
        """What it is unpacked as: Python keeps there what it has compiled. The name tells the content, so the code of
        another release has another one.
        """
        return f"dovetail-{hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()[:12]}"

    def write(self, folder: Path) -> Path:
        """The zip, in ``folder``."""
        path = folder / f"{self.folder}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in self.files.items():
                archive.writestr(name, text)
        return path
