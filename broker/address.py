"""Where a Kafka cluster answers, and what it asks of its clients."""

from __future__ import annotations

from dataclasses import dataclass


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

    def __str__(self) -> str:
        """As messages name it: without credentials."""
        return self.servers
