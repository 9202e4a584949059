"""Where a process may connect to, when a statement names the host: this file alone decides it.

A name is resolved once, all of its addresses are judged, and the connection goes to the addresses that were judged: a
name that means another address a moment later (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from dovetail.changelog.errors import SourceRefused

Address = IPv4Address | IPv6Address

_NEVER = tuple(
    ip_network(network)
    for network in (
        *("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"),
        *("::/128", "fe80::/10", "fec0::/10", "ff00::/8"),
        # Where clouds tell machines their logins, beside 169.254.169.254.
        *("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128"),
    )
)
"""Unspecified, link-local, multicast, reserved, and the metadata of clouds."""
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"), IPv6Network("::/96"))
"""Addresses of IPv6 of which the last 32 bits are one of IPv4."""
_LOOPBACK = IPv6Address("::1")
_NAME = re.compile(r"[\w.:%-]+")


@dataclass(frozen=True)
class Hosts:
    """The hosts that are listed: names, ``*.name`` for all below a name, addresses, networks; each also with ``:port``.

    An empty list allows every host but the addresses that are never allowed.
    """

    listed: tuple[str, ...] = ()

    @staticmethod
    def of(text: str) -> Hosts:
        return Hosts(tuple(entry.lower() for entry in re.split(r"[\s,]+", text) if entry))

    def addresses(self, host: str, port: int, where: str) -> tuple[str, ...]:
        """The addresses to connect to. Raises SourceRefused where one may not be, OSError where there is none."""
        found = _resolved(host, port, where)
        for address in found:
            self._expect_allowed(host, port, ip_address(address), where)
        return found

    def connected(self, host: str, port: int, timeout_s: float | None, where: str) -> socket.socket:
        """A connection to the first address that takes one. Raises as ``addresses``."""
        fault: OSError | None = None
        for address in self.addresses(host, port, where):
            try:
                return socket.create_connection((address, port), timeout_s)
            except OSError as error:
                fault = error
        raise fault or OSError("the host has no address")

    def _expect_allowed(self, host: str, port: int, address: Address, where: str) -> None:
        if any(meant in network for meant in _meanings(address) for network in _NEVER):
            raise SourceRefused(
                f"no connection is made to {host}: {address} is link-local, unspecified, multicast, reserved or the"
                " metadata of a cloud",
                where=where,
                fix="name the host of a database or a web service",
            )
        if self.listed and not any(_matches(entry, host, port, address) for entry in self.listed):
            raise SourceRefused(
                f"{host}:{port} is not among the hosts that sources may be on",
                where=where,
                fix="add it to DOVETAIL_SOURCE_HOSTS, for the session and the workers",
            )


def _resolved(host: str, port: int, where: str) -> tuple[str, ...]:
    try:
        if not _NAME.fullmatch(host) or port not in range(1, 1 << 16):
            raise ValueError
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except ValueError:  # UnicodeError is one, of a name that DNS cannot carry
        raise SourceRefused(
            f'"{host}" with port {port} is no place of the network',
            where=where,
            fix="one name or address, and a port to 65535; sockets of files are not taken",
        ) from None
    return tuple(dict.fromkeys(str(one[4][0]) for one in found))


def _meanings(address: Address) -> Iterator[Address]:
    """``address``, and the ones of IPv4 that it stands for."""
    yield address
    if isinstance(address, IPv6Address) and address != _LOOPBACK:
        teredo = address.teredo or ()
        yield from (one for one in (address.ipv4_mapped, address.sixtofour, *teredo) if one is not None)
        if any(address in network for network in _TRANSLATED):
            yield IPv4Address(int(address) & 0xFFFFFFFF)


def _matches(entry: str, host: str, port: int, address: Address) -> bool:
    named, ported = _without_port(entry, port)
    name = host.lower().rstrip(".")
    if named.startswith("*."):
        return ported and name.endswith(named[1:])
    try:
        return ported and address in ip_network(named, strict=False)
    except ValueError:
        return ported and name == named


def _without_port(entry: str, port: int) -> tuple[str, bool]:
    """The host of an entry, and whether its port, if it has one, is ``port``."""
    host, colon, number = entry.rpartition(":")
    if not colon or not number.isdecimal() or (":" in host and not host.startswith("[")):
        return entry.strip("[]"), True
    return host.strip("[]"), int(number) == port
