"""The cold tier over TLS, with a login: who is let in, and what is said to who is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from structlog.testing import capture_logs

from dovetail.changelog.errors import DovetailError, ServiceUnavailable
from dovetail.dictionaries.cache.cold.redis_client import check_redis, check_url
from dovetail.dictionaries.layouts.hybrid import Hybrid
from tests.dictionaries.cache_world import NOW_MS, FakeSource, definition, names, settle
from tests.docs.pages import Page
from tests.servers.certificates import write_certificates
from tests.servers.process import PASSWORD
from tests.servers.secure_redis import RIGHTS, SecureRedis, secure_redis

Way = Callable[[SecureRedis], str]
GIVEN: dict[str, Any] = {"timeout_ms": 2000.0, "redis_timeout_ms": 1000.0, "parameters": {"path": "shop"}}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureRedis]:
    with secure_redis(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    write_certificates(folder)
    (folder / "no.pem").write_text("no certificate")
    key = load_pem_private_key((folder / "client.key").read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hunter2"))
    (folder / "locked.key").write_bytes(locked)
    return folder


LET_IN: dict[str, Way] = {
    "password": lambda secure: secure.url(secure.server),
    "certificate": lambda secure: secure.url(secure.shown, more=secure.certificate),
    "another host, allowed": lambda secure: secure.url(secure.foreign, more="&ssl_check_hostname=false"),
}


@pytest.mark.services
@pytest.mark.parametrize("way", LET_IN)
def test_workers_share_what_either_fetched(secure: SecureRedis, way: str) -> None:
    source = FakeSource()
    source.put(a="pen", b="ink")
    url = check_url(LET_IN[way](secure))
    made = definition(**GIVEN, source={"table": way})
    with closing(Hybrid(made, source, url)) as one, closing(Hybrid(made, source, url)) as other:
        settle(lambda: all(hybrid.statistics()["is_listening"] for hybrid in (one, other)))
        assert names(one.lookup(["a", "x"], NOW_MS)) == ["pen", None]
        assert names(other.lookup(["x", "b", "a"], NOW_MS)) == [None, "ink", "pen"]
        assert source.fetched == [["a", "x"], ["b"]]
        source.put(a="quill")
        one.invalidate(token="r1")
        settle(lambda: names(other.lookup(["a"], NOW_MS)) == ["quill"])
        one.invalidate(prefix="b", token="r2")
        one.begin_feed("t", {0: 0})
        assert [hybrid.statistics()["redis_errors"] for hybrid in (one, other)] == [0, 0]


def test_the_rights_that_the_page_names_are_enough() -> None:
    assert RIGHTS in Page.of("docs/security.md").text


@pytest.mark.services
def test_the_command_of_the_page_makes_a_user_who_is_let_in(secure: SecureRedis) -> None:
    [command] = [code for code in Page.of("docs/security.md").code if code.startswith("ACL SETUSER dovetail ")]
    with redis.Redis.from_url(secure.url(secure.server, user="root")) as client:
        client.execute_command(*command.replace(">..", f">{PASSWORD}").split())
    check_redis(secure.url(secure.server, user="dovetail"), "here", 2000.0)


LOGIN, CERTIFICATE, SCHEME = "correct user and password", "of an authority that ssl_ca_certs", "rediss:// speaks TLS"
REFUSED: dict[str, tuple[Way, str, str]] = {
    "wrong password": (lambda secure: secure.url(secure.server, password="wr0ng"), "refuses the login", LOGIN),
    "unknown user": (lambda secure: secure.url(secure.server, user="nobody"), "refuses the login", LOGIN),
    "no login": (
        lambda secure: secure.url(secure.server).replace(f"alice:{PASSWORD}@", ""),
        "refuses the login",
        LOGIN,
    ),
    "wrong authority": (lambda secure: secure.url(secure.server, ca="unknown"), "self-signed", CERTIFICATE),
    "authorities of the system": (lambda secure: secure.url(secure.server, ca=""), "self-signed", CERTIFICATE),
    "expired": (lambda secure: secure.url(secure.expired), "certificate has expired", CERTIFICATE),
    "another host": (lambda secure: secure.url(secure.foreign), "not valid for '127.0.0.1'", CERTIFICATE),
    "no certificate": (lambda secure: secure.url(secure.shown), "", "ssl_certfile and ssl_keyfile"),
    "plain text to TLS": (
        lambda secure: secure.url(secure.server, ca="").replace("rediss:", "redis:"),
        "hung up",
        SCHEME,
    ),
}


@pytest.mark.services
@pytest.mark.parametrize("case", REFUSED)
def test_who_is_refused_is_told_once_what_to_change(secure: SecureRedis, case: str) -> None:
    way, reason, fix = REFUSED[case]
    url = way(secure)
    with pytest.raises(ServiceUnavailable) as refused:
        check_redis(url, "here", 2000.0)
    source = FakeSource()
    source.put(a="pen")
    with capture_logs() as lines, closing(Hybrid(definition(**GIVEN), source, url)) as hybrid:
        # A cache goes on without it, and says why.
        assert names(hybrid.lookup(["a"], NOW_MS)) == ["pen"]
        last = hybrid.statistics()["last_exception"]
        settle(lambda: any(line["event"] == "dictionary.listener_lost" for line in lines))
    for message in (str(refused.value), last):
        assert reason in message
        assert fix in message
        assert "\n  where: " in message
    for hidden in (PASSWORD, "wr0ng"):
        assert hidden not in f"{refused.value} {last} {lines}"
    warned = [(line["reason"], line["fix"]) for line in lines if line["event"] == "dictionary.listener_lost"]
    assert sorted(set(warned)) == sorted(warned)


@pytest.mark.services
def test_a_cache_takes_redis_up_again_once_its_certificate_is_replaced(secure: SecureRedis) -> None:
    source = FakeSource()
    keys = [f"k{number}" for number in range(500)]
    source.put(a="pen", **dict.fromkeys(keys, "ink"))
    with closing(Hybrid(definition(**GIVEN), source, secure.url(secure.expired))) as hybrid:
        assert names(hybrid.lookup(["a"], NOW_MS)) == ["pen"]
        assert "certificate has expired" in hybrid.statistics()["last_exception"]
        secure.show(secure.expired, "server")
        try:
            settle(lambda: hybrid.statistics()["is_listening"])
            with closing(Hybrid(definition(**GIVEN), source, secure.url(secure.expired))) as other:

                def is_shared() -> bool:
                    """Whether what one cache has asked for is there for the other."""
                    key = keys.pop()
                    assert names(hybrid.lookup([key], NOW_MS)) == names(other.lookup([key], NOW_MS)) == ["ink"]
                    return source.fetched.count([key]) == 1

                settle(is_shared)
        finally:
            secure.show(secure.expired, "expired")


@pytest.mark.services
def test_rights_that_lack_are_named(secure: SecureRedis) -> None:
    with closing(Hybrid(definition(**GIVEN), FakeSource(), secure.url(secure.server, user="poor"))) as hybrid:
        hybrid.lookup(["a"], NOW_MS)
        last = hybrid.statistics()["last_exception"]
    assert "refuses the user a command" in last
    assert "docs/security.md" in last


@pytest.mark.services
def test_tls_to_plain_text_is_told_apart_from_silence(secure: SecureRedis) -> None:
    source = FakeSource()
    source.put(a="pen")
    with closing(Hybrid(definition(**GIVEN | {"redis_timeout_ms": 300.0}), source, secure.url(secure.plain))) as hybrid:
        assert names(hybrid.lookup(["a"], NOW_MS)) == ["pen"]
        assert SCHEME in hybrid.statistics()["last_exception"]


@pytest.mark.services
def test_one_that_is_away_is_no_reason_to_refuse(secure: SecureRedis) -> None:
    check_redis("redis://127.0.0.1:1/0", "here", 500.0)


WRONG = {
    "redis//host": "no protocol",
    "http://host": "no protocol",
    "redis://:hun/ter@host:6379": "no address",
    "redis://host:6379/0?ssl_ca_certs={files}/ca.pem": "ssl_ca_certs is for TLS",
    "rediss://host?ssl_ca_cert={files}/ca.pem": "'ssl_ca_cert'",
    "rediss://host?ssl_ca_certs={files}/none.pem": "ssl_ca_certs names no file",
    "rediss://host?ssl_ca_certs=ca.pem": "ssl_ca_certs names no file: ca.pem",
    "rediss://host?ssl_ca_certs={files}/no.pem": "ssl_ca_certs cannot be read",
    "rediss://host?ssl_certfile={files}/client.pem": "belong together",
    "rediss://host?ssl_keyfile={files}/client.key": "belong together",
    "rediss://host?ssl_certfile={files}/client.pem&ssl_keyfile={files}/server.key": "ssl_certfile cannot be read",
    "rediss://host?ssl_certfile={files}/client.pem&ssl_keyfile={files}/locked.key": "ssl_certfile cannot be read",
    "rediss://:hunter2@host?ssl_certfile={files}/client.pem&ssl_keyfile={files}/locked.key&ssl_password=hunter3": (
        "ssl_certfile cannot be read"
    ),
}


@pytest.mark.parametrize("url", WRONG)
def test_an_address_that_makes_no_sense_is_refused_at_once(url: str, files: Path) -> None:
    with pytest.raises(DovetailError) as refused:
        check_url(url.format(files=files))
    assert WRONG[url] in refused.value.what
    assert refused.value.where == "DOVETAIL_REDIS_URL"
    assert refused.value.fix
    assert "hun" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://host",
        "unix:///run/redis.sock",
        "rediss://alice:p%40ss@host:6380/1",
        "rediss://host?ssl_ca_certs={files}/ca.pem&ssl_check_hostname=false",
        "rediss://host?ssl_certfile={files}/client.pem&ssl_keyfile={files}/locked.key&ssl_password=hunter2",
    ],
)
def test_an_address_that_does(url: str, files: Path) -> None:
    assert check_url(url.format(files=files)) == url.format(files=files)
