"""Who gets in: where the registry may listen, whom it answers, and who reads its file."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from pydantic import SecretStr
from starlette.testclient import TestClient

from dovetail.broker.address import RegistryAddress
from dovetail.broker.registry.client import SchemaRegistryReader
from dovetail.broker.registry.registered import SchemaText, SchemaType
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.errors import SourceRefused, StackError
from dovetail.runtime.settings import Settings
from dovetail.services.registry.application import registry_application
from dovetail.services.registry.protection import expect_protected
from dovetail.services.registry.store import SchemaStore
from dovetail.services.registry.subjects import Subjects
from tests.servers.certificates import write_certificates
from tests.servers.process import Server
from tests.servers.schema_registry import address, schema_registry

LOGIN: dict[str, Any] = {"schema_registry_user": "ann", "schema_registry_password": SecretStr("s3:cret")}
BODY = {"schema": '"int"'}


@pytest.fixture
def umask_022() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def tls(folder: Path) -> dict[str, Any]:
    for name in ("c", "k"):
        (folder / name).touch()
    return {"schema_registry_tls_certificate": folder / "c", "schema_registry_tls_key": folder / "k"}


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.1", "registry.example"])
def test_it_listens_beyond_the_machine_with_a_user_and_tls_only(tmp_path: Path, bind: str) -> None:
    def settings(**given: Any) -> Settings:
        return Settings(schema_registry_bind=bind, **given)

    with pytest.raises(StackError, match="without a user or TLS"):
        expect_protected(settings())
    with pytest.raises(StackError, match="without TLS"):
        expect_protected(settings(**LOGIN))
    with pytest.raises(StackError, match="without a user"):
        expect_protected(settings(**tls(tmp_path)))
    expect_protected(settings(**LOGIN, **tls(tmp_path)))
    expect_protected(settings(schema_registry_unprotected="on"))


@pytest.mark.parametrize("half", ["schema_registry_user", "schema_registry_tls_certificate"])
def test_half_of_a_login_or_of_a_certificate_is_refused(tmp_path: Path, half: str) -> None:
    with pytest.raises(StackError, match="one is set"):
        expect_protected(Settings(**{half: (LOGIN | tls(tmp_path))[half]}))


def test_loopback_needs_nothing() -> None:
    for bind in ("127.0.0.1", "localhost", "::1"):
        expect_protected(Settings(schema_registry_bind=bind))


def test_who_is_not_its_user_gets_nothing(tmp_path: Path) -> None:
    app = registry_application(Subjects(SchemaStore(tmp_path / "schemas.db")), Settings(**LOGIN))
    wrong = [
        None,
        *("ann:x", "ann:", ":s3:cret", "bob:s3:cret", "ann", "", "ann:s3:cret\n", "ann:s3:cre", "ann:s3:crets"),
    ]
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for login in wrong:
            headers = {} if login is None else {"Authorization": _basic(login)}
            for method, path in (("GET", "/subjects"), ("POST", "/subjects/s/versions"), ("PUT", "/config")):
                answer = client.request(method, path, json=BODY, headers=headers)
                assert (answer.status_code, answer.json()["error_code"]) == (401, 401), login
                assert answer.headers["WWW-Authenticate"].startswith("Basic")
        for header in ("Bearer x", "Basic", "Basic !", "Basic é", _basic("ann:s3:cret")[6:]):
            assert client.get("/subjects", headers={b"Authorization": header.encode()}).status_code == 401
        assert client.get("/health").json() == {"subjects": 0}
        known = {"Authorization": _basic("ann:s3:cret")}
        assert client.post("/subjects/s/versions", json=BODY, headers=known).status_code == 200


def _basic(login: str) -> str:
    return f"Basic {base64.b64encode(login.encode()).decode()}"


def test_its_file_is_for_its_owner_alone(tmp_path: Path, umask_022: None) -> None:
    folder = tmp_path / "registry"
    store = SchemaStore(folder / "schemas.db")
    store.add_schema(SchemaText(SchemaType.AVRO, '"int"'))
    assert folder.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == dict.fromkeys(("schemas.db", "schemas.db-shm", "schemas.db-wal"), 0o600)
    store.close()


def test_what_a_schema_refers_to_has_an_end(tmp_path: Path) -> None:
    app = registry_application(Subjects(SchemaStore(tmp_path / "schemas.db")), Settings())
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.post("/subjects/s/versions", json=BODY).status_code == 200
        many = [{"name": f"n{number}", "subject": "s", "version": 1} for number in range(1001)]
        answer = client.post("/subjects/t/versions", json=BODY | {"references": many})
        assert (answer.json()["error_code"], answer.json()["message"]) == (
            42201,
            "references are too many, or too large together",
        )


@pytest.mark.services
def test_the_process_speaks_tls_and_asks_who_calls(tmp_path: Path) -> None:
    write_certificates(tmp_path)
    more = {
        "DOVETAIL_SCHEMA_REGISTRY_USER": "ann",
        "DOVETAIL_SCHEMA_REGISTRY_PASSWORD": "s3:cret",
        "DOVETAIL_SCHEMA_REGISTRY_TLS_CERTIFICATE": str(tmp_path / "server.pem"),
        "DOVETAIL_SCHEMA_REGISTRY_TLS_KEY": str(tmp_path / "server.key"),
    }
    with schema_registry(tmp_path, **more) as server:
        _expect_user(server, str(tmp_path / "ca.pem"))


def _expect_user(server: Server, ca: str) -> None:
    at = address(server, "https")
    user = {"url": at, "ssl.ca.location": ca, "basic.auth.user.info": "ann:s3:cret"}
    with (
        closing(SchemaRegistryReader(RegistryAddress(at, "ann", "s3:cret", ca))) as allowed,
        closing(SchemaRegistryReader(RegistryAddress(at, "bob", "x", ca))) as refused,
        SchemaRegistryClient(user) as of_confluent,
    ):
        assert allowed.registered("s-value", SchemaDefinition("AVRO", '"int"')) == 1
        with pytest.raises(SourceRefused, match="401"):
            refused.latest("s-value")
        assert of_confluent.get_subjects() == ["s-value"]
