"""What files and variables a statement may name, by every option that names one."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.changelog.errors import DovetailError, SourceRefused, SqlError
from dovetail.changelog.schema import Column
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.options import Parameter
from dovetail.dictionaries.definition.secrets import password_of
from dovetail.dictionaries.open import Checkable, open_source
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources
from tests.paths import ROOT

COLUMNS = (Column("id", pa.int64()), Column("name", pa.string()))
SECRET = "s3cret-of-another"
LINE = '{"id": 1, "name": "%s"}\n'
SERVERS = ("mysql", "postgresql", "clickhouse")
NO_SERVER: Mapping[str, Parameter] = {"host": "127.0.0.1", "port": 9, "table": "t", "connect_timeout": 0.5}
Way = tuple[str, str]
WAYS: tuple[Way, ...] = (
    ("file", "path"),
    ("sqlite", "path"),
    ("http", "password_file"),
    *((kind, option) for kind in SERVERS for option in ("password_file", "ssl_ca", "ssl_cert", "ssl_key")),
)
"""Every option that names a file, by its kind of source."""
FILE, SQLITE, HTTP = WAYS[:3]


def naming(way: Way, path: str) -> SourceSpec:
    """A source whose option names ``path``."""
    kind, option = way
    around: Mapping[str, Mapping[str, Parameter]] = {
        "file": {"format": "JSONEachRow"},
        "sqlite": {"table": "t"},
        "http": {"url": "http://127.0.0.1:9/"},
    }
    tls: Mapping[str, Parameter] = {"secure": True, "ssl_cert": path, "ssl_key": path}
    return SourceSpec(kind, {**around.get(kind, NO_SERVER), **(tls if option.startswith("ssl") else {}), option: path})


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """``allowed`` with its ways out, beside ``other`` with what is of somebody else, and ``mounted``."""
    allowed, other, mounted = (tmp_path / name for name in ("allowed", "other", "mounted"))
    for folder in (allowed, other, mounted / "kubernetes.io", tmp_path / "allowed-too"):
        folder.mkdir(parents=True)
    (other / "secret").write_text(LINE % SECRET)
    (tmp_path / "allowed-too" / "secret").write_text(LINE % SECRET)
    (mounted / "shop").write_text("mounted")
    (mounted / "kubernetes.io" / "token").write_text(SECRET)
    (allowed / "rows").write_text(LINE % "pen")
    (allowed / "file-out").symlink_to(other / "secret")
    (allowed / "folder-out").symlink_to(other)
    (allowed / "circle").symlink_to(allowed / "circle")
    os.mkfifo(allowed / "pipe")
    return tmp_path


def outside(world: Path) -> Outside:
    return Outside(world / "allowed", world / "mounted", max_bytes=1000)


def opened(source: SourceSpec, world: Path) -> Checkable:
    return open_source(define("d", COLUMNS, ["id"], source, LayoutSpec("direct")), Resources(None, outside(world)))


WAYS_OUT = (
    "{world}/other/secret",
    "../other/secret",
    "{world}/allowed/../other/secret",
    "{world}/allowed-too/secret",
    "file-out",
    "folder-out/secret",
    "folder-out/../other/secret",
    "/proc/self/environ",
    "/proc/self/root/{world}/other/secret",
    "/dev/stdin",
    "/dev/fd/0",
    "//etc/passwd",
    "../../../../../../../../etc/passwd",
    "file:///etc/passwd",
    "{world}/mounted/kubernetes.io/token",
    "{world}/mounted/../other/secret",
    "{world}/none/secret",
    "circle",
    "pipe",
    "rows/rows",
    ".",
    "a" * 5000,
    "rows\0",
)
"""As ``str.format`` takes them."""


def refused(source: SourceSpec, world: Path) -> DovetailError:
    """What the check says, or else the reading."""
    with pytest.raises(DovetailError) as caught, closing(opened(source, world)) as made:
        _use(made)
    return caught.value


def _use(made: Checkable) -> None:
    made.check()
    list(made.load())


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_option_names_a_file_outside(world: Path, way: Way, path: str) -> None:
    error = refused(naming(way, path.format(world=world)), world)
    assert isinstance(error, SourceRefused)
    assert any(said in error.what for said in ("outside", "no file", "cannot be read", "there is no file"))
    assert SECRET not in str(error)
    assert error.fix


@pytest.mark.parametrize("way", [FILE, HTTP, ("mysql", "ssl_ca")], ids=" ".join)
def test_a_refusal_does_not_tell_whether_something_is_there(world: Path, way: Way) -> None:
    there, gone = (f"{world}/other/{name}" for name in ("secret", "nothing"))
    said = [refused(naming(way, path), world).what.replace(path, "") for path in (there, gone)]
    assert said[0] == said[1]


def test_files_within_are_read(world: Path) -> None:
    within = world / "allowed" / "rows"
    for path in ("rows", "./rows", str(within), f"{world}/other/../allowed/rows"):
        with closing(opened(naming(FILE, path), world)) as made:
            assert list(made.load()) == [[(1, "pen")]]


def test_a_file_that_becomes_a_way_out_is_refused(world: Path) -> None:
    with closing(opened(naming(FILE, "rows"), world)) as made:
        made.check()
        (world / "allowed" / "rows").unlink()
        (world / "allowed" / "rows").symlink_to(world / "other" / "secret")
        with pytest.raises(SourceRefused, match="outside"):
            made.check()


def test_a_file_is_no_larger_than_the_setting(world: Path) -> None:
    (world / "allowed" / "large").write_text(LINE % "pen" * 100)
    error = refused(naming(FILE, "large"), world)
    assert "more than 1,000 bytes" in error.what
    assert "DOVETAIL_SOURCE_MAX_BYTES" in error.fix


def test_mounted_secrets_are_for_passwords(world: Path) -> None:
    path = str(world / "mounted" / "shop")
    assert password_of({"password_file": path}, "", outside(world)) == "mounted"
    assert "outside" in refused(naming(FILE, path), world).what
    assert "outside" in refused(naming(SQLITE, path), world).what


@pytest.mark.parametrize(
    "name",
    [
        "DOVETAIL_KAFKA_SASL_PASSWORD",
        "DOVETAIL_CATALOG_PASSWORD",
        "PATH",
        "SHOP_PASSWORD",
        "dovetail_secret_shop",
        "DOVETAIL_SECRET_",
        "DOVETAIL_SECRETS_DIR",
        "DOVETAIL_SECRET_SHOP\n",
        " DOVETAIL_SECRET_SHOP",
        "X=DOVETAIL_SECRET_SHOP",
        "",
    ],
)
def test_no_other_variable_is_a_password(world: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if name and "=" not in name:
        monkeypatch.setenv(name, SECRET)
    for kind in (*SERVERS, "http"):
        given = {"url": "http://127.0.0.1:9/"} if kind == "http" else NO_SERVER
        with pytest.raises(SqlError, match="DOVETAIL_SECRET_") as caught:
            opened(SourceSpec(kind, {**given, "password_env": name}), world)
        assert "export DOVETAIL_SECRET_" in caught.value.fix
    with pytest.raises(SqlError):
        password_of({"password_env": name}, "", outside(world))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT load_extension('/lib/x.so') AS id, 'x' AS name",
        "SELECT id, name FROM t) AS d; ATTACH '{other}' AS o; SELECT * FROM (SELECT 1",
        "SELECT 1 AS id, name FROM pragma_database_list",
        "SELECT 1 AS id, file AS name FROM pragma_database_list",
        "SELECT 1 AS id, compile_options AS name FROM pragma_compile_options",
    ],
)
def test_a_query_of_sqlite_opens_nothing_else(world: Path, query: str) -> None:
    file = world / "allowed" / "shop.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE t (id int, name text)")
    text = query.format(other=world / "other" / "secret")
    refused(SourceSpec("sqlite", {"path": "shop.db", "query": text}), world)


def test_a_view_in_the_file_itself_opens_nothing_else(world: Path) -> None:
    """Who writes the file is not who writes the statement."""
    file = world / "allowed" / "shop.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE VIEW t AS SELECT 1 AS id, load_extension('/lib/x.so') AS name")
    error = refused(SourceSpec("sqlite", {"path": "shop.db", "table": "t"}), world)
    assert "not authorized" in error.what or "unsafe" in error.what


_WATCHED = """
import sys
from pathlib import Path
from tests.dictionaries import test_outside_files as cases

world = Path(sys.argv[1])
cases.warm_up(world)
seen = []
def watch(event, given):
    if event in ("open", "sqlite3.connect", "sqlite3.connect/handle", "socket.connect", "subprocess.Popen", "os.exec"):
        seen.append((event, str(given[-1] if event == "socket.connect" else given[0])))
sys.addaudithook(watch)
cases.try_all(world)
print(*(f"{event} {what}" for event, what in seen), sep="\\n")
"""


def try_all(world: Path) -> None:
    """Checks every option with every way out."""
    for way in WAYS:
        for path in WAYS_OUT:
            with suppress(DovetailError), closing(opened(naming(way, path.format(world=world)), world)) as made:
                made.check()


def warm_up(world: Path) -> None:
    """What libraries open when they are first used is opened."""
    for way in WAYS:
        with suppress(DovetailError), closing(opened(naming(way, "rows"), world)) as made:
            made.check()


def test_a_process_opens_nothing_outside(world: Path) -> None:
    """As Python's audit hooks see it, whatever the messages say."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, str(world)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    seen = [line.replace(" file:", " ").split(" ", 1) for line in done.stdout.splitlines() if line]
    assert len(seen) > 1
    of_python = (str(Path(sys.prefix)), str(Path(sys.base_prefix)), str(ROOT))
    foreign = [
        what
        for event, what in seen
        if not (event == "open" and what.startswith(of_python)) and not what.startswith(str(world / "allowed"))
    ]
    assert foreign == []
