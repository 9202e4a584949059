"""A short siege: whatever is sent, the server lives, answers, and opens nothing that is not its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.siege.run import Size, run

pytestmark = pytest.mark.services


def test_the_server_stands(tmp_path: Path) -> None:
    account = run(tmp_path, Size(requests=300, statements=200, records=300), say=print)
    assert account.ended is None
    assert account.wrong == [], "\n".join(account.wrong)
    assert account.opened == set()
    assert account.answers.keys() >= {200, 400, 401, 403, 404, 405, 413, 415, 421}
    assert account.health_s
