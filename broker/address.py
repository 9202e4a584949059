"""Where a Kafka cluster answers, and what it asks of its clients: encryption, and who they are.

The words and values of the latter are those of librdkafka.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_PORT = "9092"
_HERE = ("localhost", "127.0.0.1", "::1")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""How a client may say who it is."""


@dataclass(frozen=True, slots=True)
class Tls:
    """An encrypted connection. Each path is one on every machine that reaches the brokers.

    ca           certificates of the authorities that are trusted, as PEM; '': those of the system
    certificate  what the client shows of itself, as PEM, with its ``key``; '': nothing
    verify_host  whether the certificate of a broker must be for the name by which it is reached
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    verify_host: bool = True


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """``mechanism``: PLAIN, or one of SCRAM."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """OAUTHBEARER: a token that ``endpoint`` gives to a client for its secret, by OpenID Connect."""

    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""

    @property
    def mechanism(self) -> str:
        return "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """None of both: a cluster that anybody may read, on a network that is trusted."""

    tls: Tls | None = None
    login: PasswordLogin | TokenLogin | None = None

    @property
    def protocol(self) -> str:
        """``security.protocol``."""
        return ("sasl_" if self.login else "") + ("ssl" if self.tls else "plaintext")

    def settings(self) -> dict[str, Any]:
        """Of a client of librdkafka."""
        found = {"security.protocol": self.protocol, **_of_tls(self.tls), **_of_login(self.login)}
        return {name: value for name, value in found.items() if value != ""}


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """Where a schema registry is, and who asks; ``ca_location``: as ``Tls.ca``."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    ca_location: str = ""
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """How clients reach a cluster; read from the settings once, and handed on as it is.

    servers   ``host:port`` of one broker or several, separated by commas; they name the others
    registry  where the schemas of its topics are; None: nowhere
    """

    servers: str
    security: BrokerSecurity = field(default_factory=BrokerSecurity)
    registry: RegistryAddress | None = field(default=None, compare=False)

    @property
    def each(self) -> list[str]:
        return self.servers.split(",")

    def meets(self, other: BrokerAddress) -> bool:
        """Whether both name a broker, so that they are one cluster; ``localhost`` is 127.0.0.1, and 9092 the port."""
        return not set(map(_plain, self.each)).isdisjoint(map(_plain, other.each))

    def __str__(self) -> str:
        """As messages name it: without credentials."""
        return self.servers


def host_and_port(server: str) -> tuple[str, str]:
    address = server.strip().lower().rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, _PORT
    return host.strip("[]"), port


def _plain(server: str) -> tuple[str, str]:
    """Host and port of a server, as one form of several that are the same."""
    host, port = host_and_port(server)
    return "localhost" if host in _HERE else host, port


def _of_tls(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    return {
        "ssl.ca.location": tls.ca,
        "ssl.certificate.location": tls.certificate,
        "ssl.key.location": tls.key,
        "ssl.key.password": tls.key_password,
        "ssl.endpoint.identification.algorithm": "https" if tls.verify_host else "none",
    }


def _of_login(login: PasswordLogin | TokenLogin | None) -> dict[str, Any]:
    match login:
        case None:
            return {}
        case PasswordLogin():
            return {
                "sasl.mechanism": login.mechanism,
                "sasl.username": login.username,
                "sasl.password": login.password,
            }
        case TokenLogin():
            return {
                "sasl.mechanism": login.mechanism,
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": login.endpoint,
                "sasl.oauthbearer.client.id": login.client_id,
                "sasl.oauthbearer.client.secret": login.client_secret,
                "sasl.oauthbearer.scope": login.scope,
            }
