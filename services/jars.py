"""The jars of Kafka, of Spark's Kafka connector, and of what reaches object stores.

``jars.lock`` names each jar with its sha256; nothing else is fetched. The fetching is done by Ivy, which ships inside
PySpark, so Java and Python are all a machine needs. Ivy keeps what it fetched in ``jar_cache``, which every checkout
of a machine shares; ``jar_dir`` of a checkout holds copies, one folder per set:

    .dovetail/jars/broker/*.jar    the class path of the broker
    .dovetail/jars/spark/*.jar     beside PySpark's own jars
    .dovetail/jars/s3a/*.jar       there too, where the checkpoints are in an object store
    .dovetail/jars/flink/*.jar     for Flink, beside which the benchmarks set Dovetail

``python -m dovetail.services.jars`` fetches what is missing; with ``s3a`` after it, the last set as well.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args
from xml.sax.saxutils import quoteattr

from dovetail.changelog.errors import DovetailError, StackError
from dovetail.runtime.java import find_java
from dovetail.runtime.settings import Settings, read_settings
from dovetail.runtime.storage.places import is_object_store

JarSet = Literal["broker", "spark", "s3a", "flink"]
LOCK_FILE = Path(__file__).with_name("jars.lock")
_ALWAYS: tuple[JarSet, ...] = ("broker", "spark")


@dataclass(frozen=True)
class Jar:
    """One line of the lock."""

    jar_set: JarSet
    organisation: str
    module: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.module}-{self.version}.jar"


def locked_jars(lock_file: Path = LOCK_FILE) -> tuple[Jar, ...]:
    """The jars of the lock, in its order."""
    lines = [line.split() for line in lock_file.read_text().splitlines() if line and not line.startswith("#")]
    return tuple(Jar(_jar_set(words[0]), *words[1:]) for words in lines)


def _jar_set(word: str) -> JarSet:
    return next(jar_set for jar_set in get_args(JarSet) if jar_set == word)


def spark_sets(settings: Settings) -> tuple[JarSet, ...]:
    """What the runner needs beside PySpark's own jars."""
    return ("spark", "s3a") if is_object_store(settings.checkpoints) else ("spark",)


def jar_paths(settings: Settings, jar_set: JarSet) -> list[Path]:
    """The files of one set, fetched first where something is missing."""
    folder = jar_folder(settings, jar_set)
    return [folder / jar.file_name for jar in locked_jars() if jar.jar_set == jar_set]


def jar_folder(settings: Settings, jar_set: JarSet) -> Path:
    """The folder that holds exactly one set, fetched first where something is missing."""
    ensure_jars(settings, sets=dict.fromkeys([*_ALWAYS, jar_set]))
    return settings.jars / jar_set


def ensure_jars(
    settings: Settings, on_progress: Callable[[str], None] = lambda line: None, sets: Iterable[JarSet] = _ALWAYS
) -> None:
    """Make ``jar_dir`` hold exactly what the lock says of ``sets``; a damaged or missing file is fetched again.

    The file ``.<set>.complete`` holds the digest of the set and is written last, so a broken run is noticed by the
    next one.
    """
    if not _incomplete(settings.jars, sets):
        return
    with _exclusive(settings.jar_cache):
        wanted = _incomplete(settings.jars, sets)
        if wanted:  # another process may have fetched them while this one waited
            jars = [jar for jar in locked_jars() if jar.jar_set in wanted]
            _fetch(settings, jars, on_progress)
            for jar_set in wanted:
                _marker(settings.jars, jar_set).write_text(_digest(jar_set))
            on_progress(f"{len(jars)} jars ready in {settings.jars}")


def _incomplete(folder: Path, sets: Iterable[JarSet]) -> list[JarSet]:
    return [jar_set for jar_set in sets if not _complete(folder, jar_set)]


def _complete(folder: Path, jar_set: JarSet) -> bool:
    marker = _marker(folder, jar_set)
    jars = [jar for jar in locked_jars() if jar.jar_set == jar_set]
    there = all((folder / jar_set / jar.file_name).exists() for jar in jars)
    return there and marker.exists() and marker.read_text() == _digest(jar_set)


def _marker(folder: Path, jar_set: JarSet) -> Path:
    return folder / f".{jar_set}.complete"


def _digest(jar_set: JarSet) -> str:
    return hashlib.sha256(repr([jar for jar in locked_jars() if jar.jar_set == jar_set]).encode()).hexdigest()


def _fetch(settings: Settings, jars: Sequence[Jar], on_progress: Callable[[str], None]) -> None:
    settings.jars.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=settings.jars) as folder:
        fetched = Path(folder)
        _run_ivy(settings, fetched, jars, on_progress)
        if damaged := _damaged(fetched, jars):
            on_progress(f"fetching {len(damaged)} damaged jars again")
            for jar in damaged:
                shutil.rmtree(settings.jar_cache / jar.organisation / jar.module, ignore_errors=True)
            _run_ivy(settings, fetched, jars, on_progress)
            _refuse_damaged(_damaged(fetched, jars), settings.jar_cache)
        for jar_set in sorted({jar.jar_set for jar in jars}):
            # The whole folder is replaced: a jar of an older lock must not stay on a class path.
            shutil.rmtree(settings.jars / jar_set, ignore_errors=True)
            (fetched / jar_set).replace(settings.jars / jar_set)


def _damaged(folder: Path, jars: Sequence[Jar]) -> list[Jar]:
    """The jars that are not there, or whose sha256 is not the lock's."""
    return [jar for jar in jars if _sha256(folder / jar.jar_set / jar.file_name) != jar.sha256]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _refuse_damaged(damaged: list[Jar], jar_cache: Path) -> None:
    if damaged:
        raise StackError(
            f"jars differ from their sha256 in jars.lock, {len(damaged)} in all, first {damaged[0].file_name}",
            where=str(jar_cache),
            fix="check the repository or proxy that serves them; then delete the folder above, and try again",
        )


def _run_ivy(settings: Settings, target: Path, jars: Sequence[Jar], on_progress: Callable[[str], None]) -> None:
    """Ivy copies into ``target`` what its cache has and fetches the rest; its download lines become progress."""
    ivy_file = target / "ivy.xml"
    ivy_file.write_text(_ivy_module(jars))
    settings_file = settings.ivy_settings or target / "ivysettings.xml"
    if settings.ivy_settings is None:
        settings_file.write_text(_IVY_SETTINGS)
    argv = [str(find_java().executable), "-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-settings", str(settings_file)]
    argv += ["-ivy", str(ivy_file), "-cache", str(settings.jar_cache)]
    argv += ["-retrieve", f"{target}/[conf]/[module]-[revision].[ext]"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        lines = list(_reported(ivy.stdout, on_progress))
    if ivy.returncode != 0 or any("UNRESOLVED DEPENDENCIES" in line or "FAILED DOWNLOADS" in line for line in lines):
        raise _unresolvable(lines)


def _reported(lines: Iterator[str], on_progress: Callable[[str], None]) -> Iterator[str]:
    for line in lines:
        if line.startswith("downloading "):
            on_progress(f"fetching {line.split()[1].rsplit('/', 1)[-1]}")
        yield line


def _unresolvable(lines: list[str]) -> StackError:
    named = [line.strip(" \t:\n") for line in lines if "not found" in line or "[FAILED" in line]
    return StackError(
        f"the jars could not be fetched: {named[0] if named else ''.join(lines[-3:]).strip()}",
        fix="check the network and its proxy (Java reads http.proxyHost from JAVA_TOOL_OPTIONS), or point "
        "DOVETAIL_IVY_SETTINGS at an Ivy settings file of your own mirror; then try again",
    )


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    found = [] if spec is None or spec.origin is None else list(Path(spec.origin).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise StackError(
            "PySpark, whose Ivy fetches the jars, is not installed",
            fix="pip install dovetail; or, in a checkout: make setup",
        )
    return found[0]


# Without the POM files: the lock is complete, so Ivy fetches each jar and its checksum and nothing else.
_IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"/></resolvers>
</ivysettings>
"""


def _ivy_module(jars: Sequence[Jar]) -> str:
    sets = "".join(f"<conf name={quoteattr(name)}/>" for name in sorted({jar.jar_set for jar in jars}))
    return "\n".join(
        [
            '<ivy-module version="2.0"><info organisation="dovetail" module="jars"/>',
            f"<configurations>{sets}</configurations><dependencies>",
            *(_ivy_dependency(jar) for jar in jars),
            "</dependencies></ivy-module>",
        ]
    )


def _ivy_dependency(jar: Jar) -> str:
    names = f"org={quoteattr(jar.organisation)} name={quoteattr(jar.module)} rev={quoteattr(jar.version)}"
    return f'<dependency {names} transitive="false" conf="{jar.jar_set}->default"/>'


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """One fetching process at a time: Ivy's cache does not stand two."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str] = sys.argv[1:]) -> int:
    try:
        settings = read_settings()
        named: list[JarSet] = ["s3a"] if "s3a" in arguments else []
        wanted = dict.fromkeys([*_ALWAYS, *spark_sets(settings), *named])
        ensure_jars(settings, lambda line: print(line, flush=True), wanted)
    except DovetailError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
