"""The stacks that ``dovetail up`` has started for this user, so that a command finds the one that runs from any folder.

A command is about, in this order:

1. what its settings name: a data folder, brokers, or a catalog;
2. the stack of the working folder, be it running or not;
3. the running stack of the nearest folder around it;
4. the one stack of this user that runs, but for ``down``. Where there are several, which one is not guessed.

What is written down is where to look; whether a stack runs, its own ``stack.json`` says.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from dovetail.changelog.errors import StackError
from dovetail.runtime.environment.env_files import tell_files
from dovetail.runtime.environment.unknown_variables import warn_of_unknown
from dovetail.runtime.environment.user_state import user_state
from dovetail.runtime.settings import ENV_FILES, Settings, read_settings
from dovetail.services.stack.files import StackFiles
from dovetail.services.stack.state import read_state

_NAMING = frozenset({"data_dir", "brokers", "catalog_url"})


@dataclass(frozen=True)
class KnownStack:
    """data_dir  of the stack
    folder    where it was started: its ``.env`` has the stack's settings
    """

    data_dir: Path
    folder: Path

    def settings(self, given: Mapping[str, object]) -> Settings:
        """Those of the stack; the ``.env`` of the working folder stands before the stack's."""
        return read_settings({"data_dir": self.data_dir, **given}, self.env_files)

    @property
    def env_files(self) -> tuple[Path, ...]:
        return (self.folder / ".env", *ENV_FILES)

    def runs(self) -> bool:
        state = read_state(self.data_dir / "stack.json")
        return state is not None and state.supervisor.find() is not None


def remember(settings: Settings) -> None:
    """Let commands in other folders find the stack of ``settings``, which is started from the working folder.

    Where the home of the user cannot be written to, it is found from its own folder only.
    """
    known = KnownStack(settings.data_dir, Path.cwd())
    with suppress(OSError):
        _notes().mkdir(parents=True, exist_ok=True)
        partial = _note(settings.data_dir).with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({name: str(path) for name, path in asdict(known).items()}))
        partial.replace(_note(settings.data_dir))


def forget(settings: Settings) -> None:
    with suppress(OSError):
        _note(settings.data_dir).unlink(missing_ok=True)


def found_settings(
    given: Mapping[str, object] | None = None,
    say: Callable[[str], None] = lambda line: None,
    *,
    elsewhere: bool = True,
) -> Settings:
    """The settings of this process, with the data folder of the stack that is meant; as they are where none runs.

    say        is told of a stack that is not of the working folder, of misspelt variables, and of files that set some
    elsewhere  whether a stack may be meant that is neither of this folder nor of one around it

    Raises StackError where several run and none of them is meant more than another; else as ``read_settings``.
    """
    settings = read_settings(given)
    named = settings.model_fields_set & _NAMING or _has_stack(settings)
    found = None if named else _around(settings.data_dir) or (_only_one() if elsewhere else None)
    env_files = ENV_FILES if found is None else found.env_files
    warn_of_unknown(say, env_files)
    tell_files(say, env_files)
    if found is None:
        return settings
    say(f"the stack that was started in {found.folder}")
    return found.settings(given or {})


def other_stacks(settings: Settings) -> str:
    """What there is to say of running stacks where that of ``settings`` is not running; '' where there are none."""
    others = [str(known.folder) for known in _running() if known.data_dir != settings.data_dir]
    return f"; one runs that was started in {' and one in '.join(others)}" if others else ""


def _has_stack(settings: Settings) -> bool:
    return StackFiles(settings).state.exists() or (settings.data_dir / "catalog.db").exists()


def _around(data_dir: Path) -> KnownStack | None:
    """The running stack of the nearest folder around the working folder, which holds ``data_dir``."""
    folders = data_dir.parent.parents
    return next((known for known in (KnownStack(one / data_dir.name, one) for one in folders) if known.runs()), None)


def _only_one() -> KnownStack | None:
    running = list(_running())
    if len(running) > 1:
        places = [str(known.data_dir) for known in running]
        raise StackError(
            f"{len(running)} stacks run, and none of them is that of this folder",
            where=", ".join(places),
            fix=f"go to the folder of the one that is meant, or set DOVETAIL_DATA_DIR={places[0]}",
        )
    return running[0] if running else None


def _running() -> Iterator[KnownStack]:
    for note in sorted(_notes().glob("*.json")):
        with suppress(FileNotFoundError):  # it may be brought down meanwhile
            places = json.loads(note.read_text())
            known = KnownStack(Path(places["data_dir"]), Path(places["folder"]))
            if known.runs():
                yield known


def _notes() -> Path:
    return user_state() / "stacks"


def _note(data_dir: Path) -> Path:
    return _notes() / f"{hashlib.sha256(str(data_dir).encode()).hexdigest()[:16]}.json"
