"""The files and hosts that statements may name, as the settings of a process say."""

from __future__ import annotations

from dovetail.dictionaries.outside.outside import Outside
from dovetail.runtime.settings import Settings


def outside_of(settings: Settings) -> Outside:
    return Outside(settings.files, settings.secrets_dir, settings.source_hosts or "", settings.source_max_bytes)
