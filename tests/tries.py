"""How much the random tests try."""

from __future__ import annotations

import os

_SCALE = float(os.environ.get("TESTS_TRIES", "1"))


def tries(usual: int) -> int:
    """How many examples: ``usual`` of them in a run of all tests, ``TESTS_TRIES`` times as many elsewhere."""
    return max(1, round(usual * _SCALE))
