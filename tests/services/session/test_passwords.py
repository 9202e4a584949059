"""The password of a source, given in each way: looked for wherever Dovetail says or writes something."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dovetail.changelog.errors import DovetailError, SourceRefused, SqlError
from dovetail.services.session import Result, Rows, Session, Text, agreed
from dovetail.services.stack import Stack, temporary_stack
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateDictionary
from tests.servers import Server, mariadb
from tests.servers.process import PASSWORD
from tests.services.session.test_secure_kafka import rows, settle

pytestmark = pytest.mark.services
VARIABLE = "DOVETAIL_SECRET_OF_THE_TESTS"
LATE = "DOVETAIL_SECRET_THAT_COMES_LATE"
WRONG = "wr0ng-and-s3cret"
COMPONENTS = ("kafka", "redis", "worker")


@dataclass(frozen=True)
class Running:
    stack: Stack
    shop: Server
    file: Path

    def source(self, password: str) -> str:
        return (
            f"SOURCE(MYSQL(HOST '{self.shop.host}' PORT {self.shop.port} USER '{self.shop.user}' {password} "
            "DB 'shop' TABLE 'goods')) LAYOUT(HYBRID_HASH_CACHE(TTL 60 PATH 'shop'))"
        )

    @property
    def forms(self) -> dict[str, str]:
        return {
            "env": f"PASSWORD ENV '{VARIABLE}'",
            "file": f"PASSWORD FILE '{self.file}'",
            "text": f"PASSWORD '{PASSWORD}'",
        }


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("passwords")
    file = folder / "password"
    file.write_text(PASSWORD + "\n")
    file.chmod(0o600)
    with pytest.MonkeyPatch.context() as patched, mariadb(folder / "mariadb") as shop:
        patched.setenv(VARIABLE, PASSWORD)
        shop.execute("CREATE TABLE shop.goods (id BIGINT PRIMARY KEY, name VARCHAR(40))")
        shop.execute("INSERT INTO shop.goods VALUES (1, 'pen')")
        with temporary_stack(folder / "stack", COMPONENTS, start_timeout_s=240.0) as stack:
            yield Running(stack, shop, file)


@pytest.fixture
def session(running: Running) -> Iterator[Session]:
    with Session.open(running.stack.settings, confirm=agreed) as opened:
        yield opened


def said(results: list[Result]) -> str:
    """All that a statement answers."""
    words = []
    for result in results:
        match result:
            case Rows():
                words.append(str(result.table.to_pylist()))
            case Text():
                words.append(result.text)
            case _:
                words.append(repr(result))
    return "\n".join(words)


def files_with(text: str, folder: Path) -> list[str]:
    """The files below a folder that hold the text."""
    found = [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
    return sorted(str(path.relative_to(folder)) for path in found)


SURFACES = (
    "SHOW CREATE DICTIONARY {goods}",
    "SHOW DICTIONARIES",
    "DESCRIBE {goods}",
    "SELECT * FROM system.dictionaries",
    "SELECT * FROM {goods}",
    "SHOW CREATE {priced}",
    "SHOW VIEWS",
    "SHOW QUERIES",
    (
        "EXPLAIN SELECT o.n, g.name FROM {orders} AS o LEFT JOIN {goods} AS g ON o.k = g.id "
        "SETTINGS join_algorithm = 'direct'"
    ),
    "SYSTEM RELOAD DICTIONARY {goods}",
)


@pytest.mark.parametrize("form", ["env", "file", "text"])
def test_it_is_used_and_never_told(running: Running, session: Session, tmp_path: Path, form: str) -> None:
    names = {name: f"{name}_{form}" for name in ("goods", "orders", "priced")}
    goods, orders, priced = names.values()
    session.run(f"CREATE STREAM {orders} (n int64, k int64)")
    create = f"CREATE DICTIONARY {goods} (id int64, name string) PRIMARY KEY id {running.source(running.forms[form])}"
    shown = said(session.run(create))
    session.run(
        f"CREATE MATERIALIZED VIEW {priced} AS SELECT o.n AS n, g.name AS name FROM {orders} AS o "
        f"LEFT JOIN {goods} AS g ON o.k = g.id SETTINGS join_algorithm = 'direct', seek_to = 'earliest'; "
        f"INSERT INTO {orders} VALUES (7, 1)"
    )
    settle(session, priced)
    assert rows(session, f"SELECT n, name FROM table({priced})") == [(7, "pen")]

    shown += "".join(said(session.run(statement.format(**names))) for statement in SURFACES)
    shown += said(session.run(f"BACKUP VIEW {priced} TO '{tmp_path / 'backup'}'"))
    assert PASSWORD not in shown
    assert files_with(PASSWORD, tmp_path) == []
    settings = running.stack.settings
    assert files_with(PASSWORD, settings.log_dir) == []
    kept = [name for name in files_with(PASSWORD, settings.data_dir) if not name.startswith("catalog.db")]
    assert kept == []
    ddl = session.context.catalog.get(goods).ddl
    assert (PASSWORD in ddl) == (form == "text")
    assert (settings.data_dir / "catalog.db").stat().st_mode & 0o777 == 0o600

    session.run(f"DROP VIEW {priced}; DROP STREAM {orders}; DROP DICTIONARY {goods}")
    if form == "text":
        with pytest.raises(SqlError, match=f'"{goods}" was saved without its password') as refused:
            session.run(f"RESTORE VIEW {priced} FROM '{tmp_path / 'backup'}'")
        assert PASSWORD not in str(refused.value)


def test_a_wrong_one_is_refused_without_being_told(running: Running, session: Session, tmp_path: Path) -> None:
    file = tmp_path / "wrong"
    file.write_text(WRONG)
    for form in (f"PASSWORD '{WRONG}'", f"PASSWORD FILE '{file}'"):
        with pytest.raises(DovetailError, match="the password of user") as refused:
            session.run(f"CREATE DICTIONARY bad (id int64, name string) PRIMARY KEY id {running.source(form)}")
        assert WRONG not in f"{refused.value} {refused.value!r}"


def test_one_that_is_not_there_is_said_by_its_name(running: Running, session: Session, tmp_path: Path) -> None:
    assert "DOVETAIL_SECRET_THAT_IS_NOT_SET" not in os.environ
    for form, name in (
        ("ENV 'DOVETAIL_SECRET_THAT_IS_NOT_SET'", "DOVETAIL_SECRET_THAT_IS_NOT_SET"),
        (f"FILE '{tmp_path}/none'", "/none"),
    ):
        with pytest.raises(SourceRefused, match=name) as refused:
            session.run(
                f"CREATE DICTIONARY bad (id int64, name string) PRIMARY KEY id {running.source(f'PASSWORD {form}')}"
            )
        assert refused.value.fix


def test_a_worker_has_it_from_a_later_up(running: Running, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """And keeps it when the next one comes from a shell that lacks it."""

    def worker() -> int | None:
        return next(line.pid for line in running.stack.status() if line.name == "worker")

    def create(name: str) -> str:
        source = running.source(f"PASSWORD ENV '{LATE}'")
        return f"CREATE DICTIONARY {name} (id int64, name string) PRIMARY KEY id {source}"

    monkeypatch.setenv(LATE, PASSWORD)
    before = worker()
    with pytest.raises(SourceRefused, match=f"{LATE} with the password is not set in the worker") as refused:
        session.run(create("goods"))
    assert f"export {LATE}=.., then run: dovetail up" in refused.value.fix

    running.stack.up(COMPONENTS)
    assert (after := worker()) != before
    assert "not asked" not in said(session.run(create("goods")))
    session.run(
        "CREATE STREAM orders (n int64, k int64); "
        "CREATE MATERIALIZED VIEW priced AS SELECT o.n AS n, g.name AS name FROM orders AS o "
        "LEFT JOIN goods AS g ON o.k = g.id SETTINGS join_algorithm = 'direct', seek_to = 'earliest'; "
        "INSERT INTO orders VALUES (7, 1)"
    )
    settle(session, "priced")
    assert rows(session, "SELECT n, name FROM table(priced)") == [(7, "pen")]

    monkeypatch.delenv(LATE)
    running.stack.up(COMPONENTS)
    assert worker() == after
    assert "its source was not asked" in said(session.run(create("others")))
    session.run("DROP VIEW priced; DROP STREAM orders; DROP DICTIONARY goods; DROP DICTIONARY others")


def test_a_view_is_not_made_where_the_worker_lacks_it(
    running: Running, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dictionary was made while no worker ran."""
    monkeypatch.setenv(name := f"{LATE}_AGAIN", PASSWORD)
    source = running.source(f"PASSWORD ENV '{name}'")
    made = parse_one(f"CREATE DICTIONARY goods (id int64, name string) PRIMARY KEY id {source}")
    assert isinstance(made, CreateDictionary)
    session.context.catalog.create(made, now_ms=session.context.now_ms)
    session.run("CREATE STREAM orders (n int64, k int64)")
    with pytest.raises(SourceRefused, match=f"{name} with the password is not set in the worker"):
        session.run(
            "CREATE MATERIALIZED VIEW priced AS SELECT o.n AS n, g.name AS name FROM orders AS o "
            "LEFT JOIN goods AS g ON o.k = g.id SETTINGS join_algorithm = 'direct'"
        )
    session.run("DROP STREAM orders; DROP DICTIONARY goods")


def test_an_external_table_has_it_from_elsewhere(running: Running, session: Session) -> None:
    session.run(
        f"CREATE EXTERNAL TABLE goods SETTINGS type = 'mysql', address = '{running.shop.host}:{running.shop.port}', "
        f"user = '{running.shop.user}', password = ENV '{VARIABLE}', database = 'shop'"
    )
    assert rows(session, "SELECT id, name FROM goods") == [(1, "pen")]
    assert PASSWORD not in session.context.catalog.get("goods").ddl
    session.run("DROP EXTERNAL TABLE goods")
