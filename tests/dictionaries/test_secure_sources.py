"""Sources over TLS: which servers are trusted, and what is said of those that are not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pytest

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, SourceRefused, SqlError
from dovetail.changelog.schema import Column
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.options import Parameter
from dovetail.dictionaries.open import Checkable, open_source
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources
from tests.dictionaries.cache_world import settle
from tests.servers import Server, clickhouse, mariadb, postgresql
from tests.servers.certificates import write_certificates
from tests.servers.process import PASSWORD

COLUMNS = (Column("id", pa.int64()), Column("name", pa.string()))
STARTED = {"mysql": mariadb, "postgresql": postgresql, "clickhouse": clickhouse}
CREATED = {
    "mysql": "CREATE TABLE shop.goods (id BIGINT PRIMARY KEY, name VARCHAR(40))",
    "postgresql": "CREATE TABLE goods (id BIGINT PRIMARY KEY, name VARCHAR(40))",
    "clickhouse": "CREATE TABLE shop.goods (id Int64, name String) ENGINE = MergeTree ORDER BY id",
}


@dataclass(frozen=True)
class Served:
    kind: str
    server: Server
    files: Path

    def source(self, changed: Mapping[str, Parameter] = MappingProxyType({}), ca: str = "ca") -> Checkable:
        server = self.server
        parameters: dict[str, Parameter] = {
            "host": server.host,
            "port": server.secure_port or server.port,
            "user": server.user,
            "password": server.password,
            "db": "shop",
            "table": "goods",
            "secure": True,
            "timeout": 3.0,
            **({"ssl_ca": str(self.files / f"{ca}.pem")} if ca else {}),
            **changed,
        }
        made = define("d", COLUMNS, ["id"], SourceSpec(self.kind, parameters), LayoutSpec("direct"))
        return open_source(made, Resources(None, Outside(self.files)))

    def show(self, name: str) -> None:
        """Let the server show another of the certificates."""
        folder = self.server.folder if self.kind == "postgresql" else self.files
        for kind in ("pem", "key"):
            (folder / f"server.{kind}").write_bytes((self.files / f"{name}.{kind}").read_bytes())
        match self.kind:
            case "mysql":
                self.server.execute("FLUSH SSL")
            case "postgresql":
                before = self.server.rows("SELECT pg_conf_load_time(), pg_reload_conf()")[0][0]
                settle(lambda: self.server.rows("SELECT pg_conf_load_time()")[0][0] != before)
            case _:
                self.server.stop()
                self.server.start()

    @property
    def certificate(self) -> dict[str, Parameter]:
        return {"ssl_cert": str(self.files / "client.pem"), "ssl_key": str(self.files / "client.key")}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    write_certificates(folder)
    for kind in ("pem", "key"):
        shutil.copy(folder / f"server.{kind}", folder / f"good.{kind}")
    for key in folder.glob("*.key"):
        key.chmod(0o600)
    return folder


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.services) for kind in STARTED], scope="module")
def served(request: pytest.FixtureRequest, files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    kind = request.param
    with STARTED[kind](tmp_path_factory.mktemp("backend") / "server", files) as server:
        name = "goods" if kind == "postgresql" else "shop.goods"
        server.execute(CREATED[kind], f"INSERT INTO {name} VALUES (1, 'pen')")
        yield Served(kind, server, files)


def refusal(source: Checkable) -> DovetailError:
    with closing(source), pytest.raises(DovetailError) as caught:
        source.check()
    assert PASSWORD not in str(caught.value)
    assert caught.value.fix
    return caught.value


def test_a_server_that_is_trusted_answers(served: Served) -> None:
    for given in ({}, served.certificate):
        with closing(served.source(given)) as source:
            source.check()
            assert source.fetch(["id"], [1, 2]) == {1: ((1, "pen"),)}
            assert list(source.load()) == [[(1, "pen")]]


@pytest.mark.parametrize("ca", ["unknown", ""])
def test_an_authority_that_is_not_known_is_refused(served: Served, ca: str) -> None:
    error = refusal(served.source(ca=ca))
    assert isinstance(error, SourceRefused)
    assert "the certificate of the server is refused: " in error.what
    assert "SSL_CA" in error.fix
    assert served.server.host in error.where


def test_a_certificate_for_another_host_is_refused(served: Served) -> None:
    error = refusal(served.source({"host": "localhost"}))
    assert isinstance(error, SourceRefused)
    assert "localhost" in error.what
    assert "for the HOST of the source" in error.fix


def test_a_certificate_of_yesterday_is_refused_until_it_is_replaced(served: Served) -> None:
    """Also by a source that is open, as that of a worker is."""
    # The library of PostgreSQL does not say why.
    why = "it cannot be verified" if served.kind == "postgresql" else "expired"
    with closing(served.source()) as source:
        served.show("expired")
        try:
            error = refusal(served.source())
            with pytest.raises(SourceRefused, match=why):
                source.check()
        finally:
            served.show("good")
        assert isinstance(error, SourceRefused)
        assert why in error.what
        assert "it must be valid" in error.fix
        source.check()
        assert source.fetch(["id"], [1]) == {1: ((1, "pen"),)}


def test_a_file_that_is_not_there_is_named(served: Served) -> None:
    none = str(served.files / "none.pem")
    for given in ({"ssl_ca": none}, {**served.certificate, "ssl_key": none}):
        error = refusal(served.source(given))
        assert isinstance(error, SourceRefused)
        assert none in error.what


@pytest.mark.services
def test_a_user_of_mysql_may_need_a_certificate(files: Path, tmp_path: Path) -> None:
    with mariadb(tmp_path / "server", files) as server:
        server.execute(
            CREATED["mysql"],
            f"CREATE USER shown IDENTIFIED BY '{PASSWORD}' REQUIRE X509",
            "GRANT SELECT ON shop.* TO shown",
        )
        served = Served("mysql", server, files)
        assert isinstance(refusal(served.source({"user": "shown"})), SourceRefused)
        with closing(served.source({"user": "shown", **served.certificate})) as source:
            source.check()


@pytest.mark.services
def test_a_clickhouse_may_ask_for_a_certificate(files: Path, tmp_path: Path) -> None:
    with clickhouse(tmp_path / "server", files, mode="strict") as server:
        server.execute(CREATED["clickhouse"])
        served = Served("clickhouse", server, files)
        assert isinstance(refusal(served.source()), ServiceUnavailable)
        with closing(served.source(served.certificate)) as source:
            source.check()


@pytest.mark.parametrize("kind", STARTED)
@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"ssl_ca": "/ca.pem"}, "SSL_CA is for TLS"),
        ({"secure": False, "ssl_cert": "/a", "ssl_key": "/b"}, "SSL_CERT is for TLS"),
        ({"secure": True, "ssl_cert": "/a"}, "belong together"),
        ({"secure": True, "ssl_key": "/a"}, "belong together"),
    ],
)
def test_options_that_make_no_whole(kind: str, given: dict[str, Parameter], what: str) -> None:
    with pytest.raises(SqlError, match=what):
        define("d", COLUMNS, ["id"], SourceSpec(kind, {"table": "t", **given}), LayoutSpec("direct"))
