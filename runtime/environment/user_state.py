"""Where this user's own files of Dovetail are that belong to no stack."""

from __future__ import annotations

import os
from pathlib import Path


def user_state() -> Path:
    """The folder, which may not be there: ``$XDG_STATE_HOME/dovetail``, by default ``~/.local/state/dovetail``."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "dovetail"
