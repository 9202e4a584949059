"""Clients of Redis: encrypted and logged in as the address says, and why one is refused."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dovetail.changelog.errors import ServiceUnavailable, StackError, UnknownName
from dovetail.changelog.suggest import suggestion
from dovetail.dictionaries.definition.tls import causes, client_context

_CONNECTIONS = 32
_READ_BYTES = 1 << 20
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_OF_TLS = (*_FILES, "ssl_password", "ssl_check_hostname")
_SETTING = "DOVETAIL_REDIS_URL"
_MEND_LOGIN = f"correct user and password in {_SETTING}: rediss://user:password@host:port/0"
_MEND_RIGHTS = "give the user what docs/security.md lists: ACL SETUSER"
_MEND_CERTIFICATE = (
    f"the certificate of Redis must be valid, for the host that {_SETTING} names, and of an authority that "
    "ssl_ca_certs in it has; docs/security.md"
)
_MEND_OWN = f"Redis may ask for a certificate of its clients: ssl_certfile and ssl_keyfile in {_SETTING}"
_MEND_SCHEME = f"in {_SETTING}, rediss:// speaks TLS and redis:// plain text: take what that port of Redis speaks"
_MEND_HANGING_UP = f"{_MEND_SCHEME}; {_MEND_OWN}"
_MEND_AWAY = f"see that Redis runs at the address in {_SETTING}, and is reached from here; caches go on without it"


@dataclass(frozen=True)
class RedisFault:
    """What is wrong with Redis, and what may help. ``refuses``: it is there, and somebody has to change something."""

    what: str
    fix: str
    refuses: bool = True


def open_redis(url: str, timeout_ms: float, node: tuple[str, int] | None = None) -> redis.Redis:
    """A client that connects at its first command, and never retries: redis-py would hold a batch for a minute.

    node  host and port in the place of those of ``url``
    """
    timeout_s = timeout_ms / 1000
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=_CONNECTIONS,
        timeout=timeout_s,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
        socket_read_size=_READ_BYTES,
        protocol=2,
    )
    if node is not None:
        host, port = node
        pool.connection_kwargs |= {"host": host or pool.connection_kwargs.get("host", "localhost"), "port": port}
    return redis.Redis(connection_pool=pool)


def fault_of(error: BaseException) -> RedisFault:
    """Never the text of any error: it may quote the address with its password. That of TLS and of logins does not."""
    for cause in causes(error):
        match cause:
            case redis.AuthenticationError():
                return RedisFault(f"Redis refuses the login: {_line(cause)}", _MEND_LOGIN)
            case redis.exceptions.NoPermissionError():
                return RedisFault(f"Redis refuses the user a command: {_line(cause)}", _MEND_RIGHTS)
            case ssl.SSLCertVerificationError():
                return RedisFault(f"the certificate of Redis is refused: {cause.verify_message}", _MEND_CERTIFICATE)
            case ssl.SSLEOFError():
                return RedisFault("Redis ended the TLS connection at once", _MEND_HANGING_UP)
            case ssl.SSLError():
                return RedisFault(f"TLS with Redis fails: {cause.reason or 'no reason is given'}", _MEND_HANGING_UP)
            case ConnectionResetError():
                return RedisFault("Redis hung up", _MEND_HANGING_UP)
            case TimeoutError() if "handshake" in str(cause):
                return RedisFault("Redis did not answer in TLS", _MEND_SCHEME, refuses=False)
    return RedisFault(f"Redis: {type(error).__name__}", _MEND_AWAY, refuses=False)


def check_redis(url: str, where: str, timeout_ms: float) -> None:
    """Raises ServiceUnavailable where Redis is there and refuses; of one that is away nothing is said: caches go on."""
    client = open_redis(url, timeout_ms)
    try:
        client.ping()
    except redis.RedisError as error:
        if (fault := fault_of(error)).refuses:
            raise ServiceUnavailable(fault.what, where=where, fix=fault.fix) from None
    finally:
        client.close()


def check_url(url: str) -> str:
    """``url``, whose options are known and whose files are there. Raises StackError, and UnknownName for an option.

    A text that is no address is not repeated: where a password is not percent-encoded, any part may be of it.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise StackError(
            "this is no address", where=_SETTING, fix="in a password, write %40 for @, %2F for /, %3A for :, %23 for #"
        ) from None
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise StackError("the address begins with no protocol of Redis", where=_SETTING, fix="redis://, or rediss://")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in (*_OF_TLS, "db"):
            raise UnknownName(f"there is no option {name!r}", where=_SETTING, fix=suggestion(name, [*_OF_TLS, "db"]))
    _check_tls(parts, options)
    return url


def _check_tls(parts: SplitResult, options: Mapping[str, str]) -> None:
    given = [name for name in _OF_TLS if name in options]
    if given and parts.scheme != "rediss":
        raise StackError(
            f"{given[0]} is for TLS, which {parts.scheme}:// does not speak", where=_SETTING, fix="rediss://"
        )
    for name in _FILES:
        path = options.get(name)
        if path is not None and not (Path(path).is_absolute() and Path(path).is_file()):
            raise StackError(f"{name} names no file: {path}", where=_SETTING, fix="the whole path of a PEM file")
    if ("ssl_certfile" in options) != ("ssl_keyfile" in options):
        raise StackError(
            "a certificate and its key belong together", where=_SETTING, fix="give ssl_certfile and ssl_keyfile"
        )
    ca, certificate, key, password = (options.get(name, "") for name in (*_FILES, "ssl_password"))
    _expect_read("ssl_ca_certs", ca, lambda: client_context(ca))
    _expect_read("ssl_certfile", certificate, lambda: client_context("", certificate, key, password))


def _expect_read(name: str, path: str, read: Callable[[], ssl.SSLContext]) -> None:
    try:
        read()
    except (OSError, ValueError):
        raise StackError(
            f"{name} cannot be read: {path}",
            where=_SETTING,
            fix="PEM files that belong together, readable for this user, with ssl_password where the key has one",
        ) from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
