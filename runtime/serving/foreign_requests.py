"""Requests that a page of another site has made a browser send: what tells them from a service's own.

A page can let the name of its site lead to an address of this machine, and then counts as of one origin with what
listens there: only the header ``Host`` tells. An address in it is no such name: it leads to itself alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from dovetail.sql.syntax.redact import quoted

_OWN_PAGES = ("same-origin", "none")
_LONGEST = 260
"""Of a name, 253 characters, with a port."""


@dataclass(frozen=True)
class ForeignRequest:
    """Why a request is not carried out, and the status of the answer."""

    what: str
    where: str
    fix: str
    status: HTTPStatus


def names_of(written: str | None) -> frozenset[str]:
    """Of a setting that has them with commas between."""
    return frozenset(name.lower().rstrip("/") for name in (written or "").split(",") if name)


def hosts_of(bind: str, written: str | None) -> frozenset[str]:
    """The names of what listens at ``bind`` and is called by those of a setting besides."""
    return names_of(written) | {"localhost", bind.lower()}


def host_of(authority: str) -> str | None:
    """``name`` of ``name:port``, in lower case; None where that is none, or is longer than names are."""
    try:
        parts = urlsplit(f"//{authority}")
        _ = parts.port
    except ValueError:
        return None
    own = parts.netloc == authority and parts.username is None and len(authority) <= _LONGEST
    return parts.hostname if own else None


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def foreign_host(named: Sequence[str | None], known: Collection[str], setting: str) -> ForeignRequest | None:
    """For a host that is neither an address nor one of the ``known`` names, to which ``setting`` adds; for several."""
    host = named[0] if len(named) == 1 else None
    if host is not None and (host in known or is_address(host)):
        return None
    return ForeignRequest(
        f"the request was sent to {quoted(host or 'no host', _LONGEST)!r}, which is no name of this service",
        where="header Host",
        fix=f"ask it by its address, or put the name into {setting}",
        status=HTTPStatus.MISDIRECTED_REQUEST,
    )


def foreign_page(
    origins: Sequence[str], site: str | None, own: str, allowed: Collection[str], fix: str
) -> ForeignRequest | None:
    """For what comes from neither the ``own`` origin nor an ``allowed`` one, by ``Origin`` and ``Sec-Fetch-Site``."""
    foreign = [quoted(origin, _LONGEST) for origin in origins if origin.lower() not in {own.lower(), *allowed}]
    if not foreign and (origins or site is None or site in _OWN_PAGES):
        return None
    return ForeignRequest(
        f"a page of {foreign[0] if foreign else 'another site'!r} asks, and only those of {own} may",
        where="header Origin" if foreign else "header Sec-Fetch-Site",
        fix=fix,
        status=HTTPStatus.FORBIDDEN,
    )
