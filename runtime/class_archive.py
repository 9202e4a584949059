"""Class archives: the classes that a program of Java loads, parsed and verified once, in a file that its JVM maps.

Half of the processor time that Kafka and Spark take to start goes into their classes. A JVM writes such an archive as
it ends (``-XX:ArchiveClassesAtExit``), and a later one maps it (``-XX:SharedArchiveFile``): it compares Java and the
class path with those of the archive, and loads its classes one by one where they differ. JVMs of one machine share the
pages of the file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from dovetail.runtime.java import java_executable

FOLDER = "archives"
_QUIET = "-Xlog:cds*=off,class+path=off"
"""What fits no longer is no news to a user: it is recorded again with the next jars."""
_TOLERANT = "-XX:+IgnoreUnrecognizedVMOptions"
"""For JVMs other than HotSpot, which know no such archives."""


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one program, whether it has been recorded or not.

    name   the program, and the digest of the Java and the class path that the archive is for
    """

    folder: Path
    name: str

    @staticmethod
    def of_broker(jars: Path) -> ClassArchive:
        """That of Kafka. ``jars``: the folder of the sets of jars."""
        return ClassArchive._of("broker", jars, jars.glob("broker/*.jar"))

    @staticmethod
    def of_spark(jars: Path) -> ClassArchive:
        """That of the driver of PySpark as it is installed here, with what of ``jars`` is on its class path."""
        pyspark = find_spec("pyspark")
        folder = Path() if pyspark is None or pyspark.origin is None else Path(pyspark.origin).parent
        return ClassArchive._of("spark", jars, [*folder.glob("jars/*.jar"), *jars.glob("spark/*.jar")])

    @staticmethod
    def _of(program: str, jars: Path, class_path: Iterable[Path]) -> ClassArchive:
        """For the Java that is found now and a class path as it is now."""
        files = [java_executable().resolve(), *sorted(class_path)]
        seen = repr([(str(file), file.stat().st_size, int(file.stat().st_mtime)) for file in files])
        return ClassArchive(jars / FOLDER, f"{program}-{hashlib.sha256(seen.encode()).hexdigest()[:16]}")

    @property
    def path(self) -> Path | None:
        """Its file, if that is as long as it was when it was recorded: a JVM aborts over one that was cut off."""
        return next((file for file in self.folder.glob(f"{self.name}-*.jsa") if _is_whole(file)), None)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a JVM that uses it; none where there is none."""
        return () if self.path is None else (_TOLERANT, f"-XX:SharedArchiveFile={self.path}", _QUIET)

    @property
    def recording(self) -> tuple[str, ...]:
        """The options of a JVM that writes it as it ends; ``keep`` puts it into its place."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return (_TOLERANT, f"-XX:ArchiveClassesAtExit={self._recorded}", _QUIET)

    def forget(self) -> None:
        """Remove every archive of the program."""
        program, _, _ = self.name.rpartition("-")
        for file in self.folder.glob(f"{program}-*.jsa"):
            file.unlink(missing_ok=True)

    def keep(self) -> None:
        """Put what a JVM has recorded into its place, where it has recorded anything."""
        if self._recorded.exists():
            with self._recorded.open("rb") as recorded:
                os.fsync(recorded.fileno())
            self._recorded.replace(self.folder / f"{self.name}-{self._recorded.stat().st_size}.jsa")

    @property
    def _recorded(self) -> Path:
        return self.folder / f"{self.name}.recorded"


def _is_whole(file: Path) -> bool:
    return file.stat().st_size == int(file.stem.rpartition("-")[2])
