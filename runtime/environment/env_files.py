"""Which files of settings a command has read, where they change anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic_settings import DotEnvSettingsSource

from dovetail.runtime.settings import ENV_FILES, Settings


def tell_files(say: Callable[[str], object], env_files: Sequence[Path] = ENV_FILES) -> None:
    """``say`` gets a line for each file that sets something, with the names alone: values may be passwords."""
    for path in env_files:
        names = setting_names(path)
        if names:
            say(f"{path.absolute()} sets {', '.join(names)}")


def setting_names(path: Path) -> list[str]:
    """Of the settings that the file sets and the environment does not, in order."""
    known = {f"DOVETAIL_{name.upper()}" for name in Settings.model_fields}
    given = {name.upper() for name, value in os.environ.items() if value}
    found = DotEnvSettingsSource(Settings, env_file=path, case_sensitive=True).env_vars
    return sorted({name.upper() for name, value in found.items() if value} & known - given)
