"""The settings of encryption and login: which of them make a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.broker.address import BrokerSecurity, PasswordLogin, Tls, TokenLogin
from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import read_settings

PREFIX = "DOVETAIL_KAFKA_"
LOGIN = {"SASL_USERNAME": "alice", "SASL_PASSWORD": "s3cret"}
TOKEN = {
    "SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": "https://login.example/token",
    "SASL_OAUTHBEARER_CLIENT_ID": "dovetail",
    "SASL_OAUTHBEARER_CLIENT_SECRET": "s3cret",
}


def security(monkeypatch: pytest.MonkeyPatch, **variables: str) -> BrokerSecurity:
    for name, value in variables.items():
        monkeypatch.setenv(PREFIX + name, value)
    settings = read_settings()
    monkeypatch.setenv("DOVETAIL_BROKERS", "broker:9092")
    address = read_settings().broker_address
    assert address is not None
    assert address.security == settings.kafka_security
    assert "s3cret" not in f"{settings!r} {address!r} {settings.model_dump_json()}"
    return address.security


def test_nothing_is_said_where_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert security(monkeypatch).settings() == {"security.protocol": "plaintext"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "scram-sha-256", "SCRAM-SHA-512"])
def test_a_password(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    found = security(monkeypatch, SECURITY_PROTOCOL="SASL_SSL", SASL_MECHANISM=mechanism, **LOGIN)
    assert found == BrokerSecurity(Tls(), PasswordLogin(mechanism.upper(), "alice", "s3cret"))
    assert found.settings()["security.protocol"] == "sasl_ssl"


def test_a_password_in_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    found = security(monkeypatch, SECURITY_PROTOCOL="sasl_plaintext", SASL_MECHANISM="PLAIN", **LOGIN)
    assert found.tls is None
    assert found.settings()["security.protocol"] == "sasl_plaintext"


def test_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    found = security(monkeypatch, SECURITY_PROTOCOL="sasl_ssl", SASL_MECHANISM="OAUTHBEARER", **TOKEN)
    assert found.login == TokenLogin("https://login.example/token", "dovetail", "s3cret")


def test_a_certificate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).touch()
    found = security(
        monkeypatch,
        SECURITY_PROTOCOL="ssl",
        SSL_CA_LOCATION=f"{tmp_path}/ca",
        SSL_CERTIFICATE_LOCATION=f"{tmp_path}/certificate",
        SSL_KEY_LOCATION=f"{tmp_path}/key",
        SSL_KEY_PASSWORD="s3cret",
        SSL_ENDPOINT_IDENTIFICATION_ALGORITHM="none",
    )
    assert found.tls == Tls(f"{tmp_path}/ca", f"{tmp_path}/certificate", f"{tmp_path}/key", "s3cret", False)


@pytest.mark.parametrize(
    ("variables", "what"),
    [
        ({"SECURITY_PROTOCOL": "tls"}, "setting DOVETAIL_KAFKA_SECURITY_PROTOCOL: .*'sasl_ssl'"),
        ({"SASL_PASSWORD": "s3cret"}, "DOVETAIL_KAFKA_SECURITY_PROTOCOL is not"),
        ({"SSL_CA_LOCATION": "/ca.pem"}, "set DOVETAIL_KAFKA_SECURITY_PROTOCOL to ssl or sasl_ssl"),
        ({"SECURITY_PROTOCOL": "sasl_ssl"}, "DOVETAIL_KAFKA_SASL_MECHANISM is not set: one of PLAIN"),
        ({"SECURITY_PROTOCOL": "sasl_ssl", "SASL_MECHANISM": "GSSAPI"}, "setting DOVETAIL_KAFKA_SASL_MECHANISM"),
        (
            {"SECURITY_PROTOCOL": "sasl_ssl", "SASL_MECHANISM": "PLAIN", "SASL_USERNAME": "alice"},
            "DOVETAIL_KAFKA_SASL_PASSWORD is not set: which PLAIN needs",
        ),
        (
            {"SECURITY_PROTOCOL": "sasl_ssl", "SASL_MECHANISM": "OAUTHBEARER", **LOGIN},
            "DOVETAIL_KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL is not set",
        ),
        ({"SECURITY_PROTOCOL": "ssl", "SSL_CA_LOCATION": "/no/ca.pem"}, "names no file: /no/ca.pem"),
        ({"SECURITY_PROTOCOL": "ssl", "SSL_KEY_LOCATION": __file__}, "a certificate and its key belong together"),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, dict) else "",
)
def test_what_makes_no_whole_is_refused(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], what: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(StackError, match=what) as refused:
        read_settings()
    assert "s3cret" not in str(refused.value)
