"""Where a Kafka cluster answers, and what it asks of its clients."""

from __future__ import annotations

from dataclasses import dataclass

_PORT = "9092"
_HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """How clients reach a cluster; read from the settings once, and handed on as it is.

    Encryption and credentials become fields of this class: ``broker.clients``, which reads it, makes every client.

    servers   ``host:port`` of one broker or several, separated by commas; they name the others
    """

    servers: str

    @property
    def each(self) -> list[str]:
        return self.servers.split(",")

    def meets(self, other: BrokerAddress) -> bool:
        """Whether both name a broker, so that they are one cluster; ``localhost`` is 127.0.0.1, and 9092 the port."""
        return not set(map(_plain, self.each)).isdisjoint(map(_plain, other.each))

    def __str__(self) -> str:
        """As messages name it: without credentials."""
        return self.servers


def _plain(server: str) -> tuple[str, str]:
    """Host and port of a server, as one form of several that are the same."""
    address = server.strip().lower().rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, _PORT
    host = host.strip("[]")
    return "localhost" if host in _HERE else host, port
