"""What an admin's statements reach over HTTP where functions in Python are off: nothing that settings do not allow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.dictionaries.test_outside_files import SECRET, WAYS, naming
from tests.dictionaries.test_outside_hosts import KINDS, NEVER, source_at
from tests.paths import ROOT
from tests.services.serve.world import PLAIN, World

OTHER = "DOVETAIL_KAFKA_SASL_PASSWORD"
_PLACES = (
    *("{folder}/other/secret", "../other/secret", "out", "/proc/self/environ"),
    *("{folder}/catalog.db", "../catalog.db"),
)


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int | float) else f"'{value}'"


def _dictionary(kind: str, options: str) -> str:
    return (
        f"CREATE DICTIONARY d (id int64, name string) PRIMARY KEY id SOURCE({kind.upper()}({options})) LAYOUT(DIRECT())"
    )


def _spelt(name: str, value: object) -> str:
    option, _, place = name.partition("_") if name.startswith("password") else (name, "", "")
    return f"{option.upper()} {place.upper()} {_literal(value)}"


def statements(folder: Path) -> Iterator[str]:
    """Each names what is not to be read or reached."""
    for way in WAYS:
        for place in _PLACES:
            source = naming(way, place.format(folder=folder))
            yield _dictionary(source.kind, " ".join(_spelt(*given) for given in source.parameters.items()))
    for place in _PLACES:
        named = place.format(folder=folder)
        yield f"CREATE EXTERNAL TABLE d SETTINGS type = 'sqlite', address = '{named}', table = 't'"
        for kind in ("mysql", "postgresql", "clickhouse"):
            yield (
                f"CREATE EXTERNAL TABLE d SETTINGS type = '{kind}', address = '127.0.0.1:9', table = 't', "
                f"password = FILE '{named}'"
            )
        yield f"BACKUP VIEW v TO '{named}'"
        yield f"RESTORE VIEW v FROM '{named}'"
    for kind in KINDS:
        for host in NEVER[:3]:
            source = source_at(kind, host, 80)
            yield _dictionary(kind, " ".join(_spelt(*given) for given in source.parameters.items()))
        source = source_at(kind, "127.0.0.1", 9, password_env=OTHER)
        yield _dictionary(kind, " ".join(_spelt(*given) for given in source.parameters.items()))
        source = source_at(kind, "127.0.0.1", 9)
        yield _dictionary(kind, " ".join(_spelt(*given) for given in source.parameters.items()))
    yield f"CREATE EXTERNAL TABLE d SETTINGS type = 'mysql', address = '127.0.0.1:9', password = ENV '{OTHER}'"
    yield "CREATE FUNCTION f(a int) RETURNS int LANGUAGE PYTHON AS $$ def f(a): return open('/etc/passwd') $$"


def ask_all(folder: Path) -> list[str]:
    """The answers to all statements; where there are no users, everybody is an admin."""
    world = World(
        folder, python_functions="off", files_dir=folder / "files", backup_dir=folder / "backups",
        source_hosts="127.0.0.1:1",
    )  # fmt: skip

    async def ask(client: httpx.AsyncClient) -> list[str]:
        return [(await client.post("/v1/sql", content=text, headers=PLAIN)).text for text in statements(folder)]

    answers: list[str] = world.with_client(ask)
    return answers


_WATCHED = """
import json, sys
from pathlib import Path
from tests.services.serve import test_outgoing as cases

folder = Path(sys.argv[1])
first = cases.ask_all(folder)  # what libraries open when they are first used is opened
seen = []
def watch(event, given):
    if event in ("open", "sqlite3.connect", "socket.connect", "subprocess.Popen", "os.exec"):
        seen.append([event, str(given[-1] if event == "socket.connect" else given[0])])
sys.addaudithook(watch)
answers = cases.ask_all(folder)
print(json.dumps([first, answers, seen]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("files", "other", "backups"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "secret").write_text(json.dumps({"id": 1, "name": SECRET}))
    (tmp_path / "files" / "out").symlink_to(tmp_path / "other" / "secret")
    return tmp_path


def test_no_statement_of_an_admin_reads_or_reaches_what_is_not_allowed(folder: Path) -> None:
    """As the audit hooks of Python see it: files that are opened, places that are connected to."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, OTHER: SECRET},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, answers, seen = json.loads(done.stdout.splitlines()[-1])
    for statement, answer in zip((*statements(folder), *statements(folder)), (*first, *answers), strict=True):
        assert '"error"' in answer, (statement, answer)
        assert SECRET not in answer
    of_the_process = (
        str(ROOT), sys.prefix, sys.base_prefix, str(folder / "catalog.db"), str(folder / "serve-users"), "/dev/null",
    )  # fmt: skip
    foreign = [(event, what) for event, what in seen if event != "open" or not what.startswith(of_the_process)]
    assert [one for one in foreign if one != ("sqlite3.connect", str(folder / "catalog.db"))] == []
