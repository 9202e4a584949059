"""What every request passes before its route: the name it was sent to, the page it comes from, and who sends it."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from changelog.errors import DovetailError
from runtime.settings import Settings
from services.serve.access.doorkeeper import Doorkeeper
from services.serve.refusals import RequestRefused, refusal
from sql.syntax.redact import quoted

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_LONGEST_NAME = 255
_OWN_PAGES = ("same-origin", "none")
PAGE = "/page/"
OPEN_PATHS = ("/", "/health", "/ready", "/openapi.json")
"""What is answered to anybody who reaches the port, with the files under PAGE: nothing of it is about data."""


def is_loopback(address: str) -> bool:
    """Whether only processes of this machine reach it."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Gate:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, settings: Settings, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._hosts = {*_LOOPBACK_NAMES, settings.serve_bind.lower(), *_names(settings.serve_hosts)}
        self._origins = _names(settings.serve_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            expect_host(headers, self._hosts)
            expect_own_page(headers, scope["scheme"], self._origins)
            if scope["path"] not in OPEN_PATHS and not scope["path"].startswith(PAGE):
                scope.setdefault("state", {})["user"] = self._doorkeeper.admitted(headers.get("authorization"))
        except DovetailError as error:
            await refusal(error, f"{scope['method']} {scope['path']}")(scope, receive, _guarded(send))
            return
        await self._app(scope, receive, _guarded(send))


def _names(written: str | None) -> frozenset[str]:
    return frozenset(name.lower().rstrip("/") for name in (written or "").split(",") if name)


def _guarded(send: Send) -> Send:
    """Tells browsers what not to do with an answer."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


def expect_host(headers: Headers, known: Collection[str]) -> None:
    """Raises RequestRefused for a name that is not the service's.

    A page can let the name of its own site lead to this address, and then counts as of one origin with it: only the
    header tells.
    """
    given = headers.getlist("host")
    host = host_of(given[0]) if len(given) == 1 else None
    if host is None or host not in known:
        raise RequestRefused(
            f"the request was sent to {quoted(host or 'no host', _LONGEST_NAME)!r}, which is no name of this service",
            where="header Host",
            fix="ask it by its address, or put the name into DOVETAIL_SERVE_HOSTS",
            status=HTTPStatus.MISDIRECTED_REQUEST,
        )


def host_of(authority: str) -> str | None:
    """``name`` of ``name:port``, in lower case; None where that is none."""
    try:
        parts = urlsplit(f"//{authority}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == authority and parts.username is None else None


def expect_own_page(headers: Headers, scheme: str, allowed: Collection[str]) -> None:
    """Raises RequestRefused for what a page of another site has sent, with its user's browser as the messenger."""
    origins = headers.getlist("origin")
    own = f"{scheme}://{headers.get('host', '')}".lower()
    foreign = [origin for origin in origins if origin.lower() not in {own, *allowed}]
    site = headers.get("sec-fetch-site")
    if not foreign and (origins or site is None or site in _OWN_PAGES):
        return
    asks = quoted(foreign[0] if foreign else "another site", _LONGEST_NAME)
    raise RequestRefused(
        f"a page of {asks!r} asks, and only those of {own} may",
        where="header Origin" if foreign else "header Sec-Fetch-Site",
        fix="ask from a page of the service, or from a program; or put the page's origin into DOVETAIL_SERVE_ORIGINS",
        status=HTTPStatus.FORBIDDEN,
    )
