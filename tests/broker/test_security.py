"""Encryption and login, with a real broker: by both client libraries, and what is said where it is refused."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiokafka  # type: ignore[import-untyped]
import orjson
import pytest
from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress, BrokerSecurity, PasswordLogin, Tls, TokenLogin
from dovetail.broker.presence import BrokerWatch, no_answer
from dovetail.services.worker.query.kafka_credentials import credentials
from tests.servers.process import PASSWORD
from tests.servers.secure_broker import USER, SecureBroker, secure_broker
from tests.services.worker.lanes import until

pytestmark = pytest.mark.services
SECRET, LATER = "secret-of-the-client", "another-password"
Way = Callable[[SecureBroker, str], BrokerAddress]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.fixture(scope="module")
def tokens() -> Iterator[str]:
    """Where a token is given to who knows the secret; the broker of the tests looks at no signature."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tokens)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    thread.join()
    server.server_close()


class Tokens(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        known = base64.b64encode(f"{USER}:{SECRET}".encode()).decode()
        allowed = self.headers["Authorization"] == f"Basic {known}"
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(orjson.dumps(given() if allowed else {"error": "invalid_client"}))

    def log_message(self, *_arguments: object) -> None:
        pass


def given() -> dict[str, object]:
    now_s = int(time.time())
    parts = ({"alg": "none"}, {"sub": USER, "iat": now_s, "exp": now_s + 300})
    words = [base64.urlsafe_b64encode(orjson.dumps(part)).decode().rstrip("=") for part in parts]
    return {"access_token": ".".join([*words, ""]), "token_type": "Bearer", "expires_in": 300}


WAYS: dict[str, Way] = {
    "PLAIN": lambda secure, _: secure.by_password("PLAIN"),
    "SCRAM-SHA-256": lambda secure, _: secure.by_password("SCRAM-SHA-256"),
    "SCRAM-SHA-512": lambda secure, _: secure.by_password("SCRAM-SHA-512"),
    "OAUTHBEARER": lambda secure, tokens: BrokerAddress(
        secure.login, BrokerSecurity(secure.tls, TokenLogin(tokens, USER, SECRET))
    ),
    "certificate": lambda secure, _: secure.by_certificate,
    "another host, allowed": lambda secure, _: BrokerAddress(
        secure.foreign, BrokerSecurity(replace(secure.tls, verify_host=False))
    ),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_both_libraries_are_let_in(secure: SecureBroker, tokens: str, way: str) -> None:
    brokers = WAYS[way](secure, tokens)
    assert no_answer(brokers, 10) is None
    assert asyncio.run(_topics_by_aiokafka(brokers)) == set()


async def _topics_by_aiokafka(brokers: BrokerAddress) -> set[str]:
    login = credentials_to_aiokafka_auth(credentials(brokers.security))
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=brokers.servers, **login)
    await consumer.start()
    try:
        return set(await consumer.topics())
    finally:
        await consumer.stop()


LOGIN, CERTIFICATE, PROTOCOL = "DOVETAIL_KAFKA_SASL_MECHANISM", "certificate must be valid", "_SECURITY_PROTOCOL"
REFUSED: dict[str, tuple[Way, str, str]] = {
    "wrong password": (lambda secure, _: secure.by_password(password="wr0ng"), "invalid credentials", LOGIN),
    "wrong password of PLAIN": (lambda secure, _: secure.by_password("PLAIN", "wr0ng"), "Invalid username", LOGIN),
    "wrong mechanism": (
        lambda secure, _: replace(secure.by_password(), servers=secure.plain),
        "supported mechanisms: PLAIN",
        LOGIN,
    ),
    "wrong secret": (
        lambda secure, tokens: BrokerAddress(
            secure.login, BrokerSecurity(secure.tls, TokenLogin(tokens, USER, "wr0ng"))
        ),
        "Failed to acquire SASL OAUTHBEARER token",
        LOGIN,
    ),
    "wrong authority": (
        lambda secure, _: replace(
            secure.by_certificate, security=BrokerSecurity(Tls(str(secure.folder / "unknown.pem")))
        ),
        "certificate",
        CERTIFICATE,
    ),
    "authorities of the system": (
        lambda secure, _: BrokerAddress(secure.foreign, BrokerSecurity(Tls())),
        "certificate",
        CERTIFICATE,
    ),
    "another host": (
        lambda secure, _: BrokerAddress(secure.foreign, BrokerSecurity(secure.tls)),
        "certificate",
        CERTIFICATE,
    ),
    "expired": (
        lambda secure, _: BrokerAddress(secure.expired, BrokerSecurity(secure.tls)),
        "certificate",
        CERTIFICATE,
    ),
    "no certificate": (
        lambda secure, _: BrokerAddress(secure.shown, BrokerSecurity(secure.tls)),
        "certificate",
        CERTIFICATE,
    ),
    "in plain text": (lambda secure, _: BrokerAddress(secure.login), "hung up on one that speaks plaintext", PROTOCOL),
    "without a login": (
        lambda secure, _: BrokerAddress(secure.login, BrokerSecurity(secure.tls)),
        "hung up on one that speaks ssl",
        PROTOCOL,
    ),
    "encrypted where nothing is": (
        lambda secure, _: BrokerAddress(secure.inside, BrokerSecurity(secure.tls)),
        "PLAINTEXT broker listener",
        PROTOCOL,
    ),
    "a login where none is asked for": (
        lambda secure, _: BrokerAddress(
            secure.inside, BrokerSecurity(None, PasswordLogin("SCRAM-SHA-512", USER, PASSWORD))
        ),
        "supported mechanisms",
        PROTOCOL,
    ),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_who_is_refused_is_told_what_to_change(secure: SecureBroker, tokens: str, case: str) -> None:
    way, reason, fix = REFUSED[case]
    found = no_answer(way(secure, tokens), 5)
    assert found is not None
    assert reason in found.reason
    assert fix in found.fix
    for hidden in (PASSWORD, SECRET, "wr0ng"):
        assert hidden not in found.reason + found.fix


def test_who_was_refused_is_let_in_once_the_password_is_right(secure: SecureBroker) -> None:
    watch = BrokerWatch(secure.by_password(password=LATER))
    watch.start()
    try:
        until(lambda: "invalid credentials" in watch.trouble)
        assert LATER not in watch.trouble
        set_password(secure, LATER)
        until(lambda: not watch.trouble)
    finally:
        watch.stop()
        set_password(secure, PASSWORD)


def set_password(secure: SecureBroker, password: str) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion(USER, info, password.encode())
    admin = clients.admin(BrokerAddress(secure.inside))
    admin.alter_user_scram_credentials([upsertion])[USER].result(30)


def test_nothing_that_is_printed_holds_a_secret() -> None:
    login = PasswordLogin("PLAIN", USER, PASSWORD)
    secrets = [login, TokenLogin("http://x", USER, SECRET), Tls(key_password=SECRET)]
    brokers = BrokerAddress("a:1", BrokerSecurity(Tls(), login))
    shown = " ".join(f"{one} {one!r}" for one in [*secrets, brokers])
    assert PASSWORD not in shown
    assert SECRET not in shown
