"""What every request passes before its route: the name it was sent to, the page it comes from, and who sends it."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dovetail.changelog.errors import DovetailError
from dovetail.runtime.serving.foreign_requests import (
    ForeignRequest,
    foreign_host,
    foreign_page,
    host_of,
    hosts_of,
    names_of,
)
from dovetail.runtime.settings import Settings
from dovetail.services.serve.access.authenticator import Authenticator
from dovetail.services.serve.refusals import RequestRefused, refusal

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FIX_PAGE = "ask from a page of the service, or from a program; or put the page's origin into DOVETAIL_SERVE_ORIGINS"
_SAFE = ("GET", "HEAD", "OPTIONS")
_OF_BROWSERS = ("origin", "referer", "upgrade-insecure-requests")
FORM_TYPES = ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "")
"""The types of bodies that a page may have sent to other sites without a question; a body may have none."""
PAGE_HEADER = "X-Dovetail-Page"
"""What the service's own page sends along, and no other page can."""
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


class SecurityMiddleware:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, settings: Settings, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator
        self._hosts = hosts_of(settings.serve_bind, settings.serve_hosts)
        self._origins = names_of(settings.serve_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            expect_host(headers, self._hosts)
            expect_own_page(headers, scope["scheme"], self._origins)
            expect_no_form(headers, scope["method"])
            if scope["path"] not in OPEN_PATHS and not scope["path"].startswith(PAGE):
                scope.setdefault("state", {})["user"] = self._authenticator.admitted(headers.get("authorization"))
        except DovetailError as error:
            await refusal(error, f"{scope['method']} {scope['path']}")(scope, receive, _guarded(send))
            return
        await self._app(scope, receive, _guarded(send))


def _guarded(send: Send) -> Send:
    """Tells browsers what not to do with an answer."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


def expect_host(headers: Headers, known: Collection[str], setting: str = "DOVETAIL_SERVE_HOSTS") -> None:
    """Raises RequestRefused for a name that is not the service's."""
    _refuse(foreign_host([host_of(one) for one in headers.getlist("host")], known, setting))


def expect_own_page(headers: Headers, scheme: str, allowed: Collection[str]) -> None:
    """Raises RequestRefused for what a page of another site has sent, with its user's browser as the messenger."""
    own = f"{scheme}://{headers.get('host', '')}"
    _refuse(foreign_page(headers.getlist("origin"), headers.get("sec-fetch-site"), own, allowed, _FIX_PAGE))


def _refuse(found: ForeignRequest | None) -> None:
    if found is not None:
        raise RequestRefused(found.what, where=found.where, fix=found.fix, status=found.status)


def expect_no_form(headers: Headers, method: str) -> None:
    """Raises RequestRefused where a browser sends something that a form could send, and not the service's own page.

    Any page can have a form sent anywhere, as one of the ``FORM_TYPES``. Another type, or a header of one's own, goes
    to another site only where that has agreed before, which this one never does.
    """
    if method in _SAFE or not _is_of_browser(headers):
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORM_TYPES:
        raise RequestRefused(
            f"a browser sends {kind!r}, as a form of any page could" if kind else "a browser sends a body of no type",
            where="header Content-Type",
            fix="send application/json or application/sql",
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    if PAGE_HEADER not in headers:
        raise RequestRefused(
            f"a browser asks without the header {PAGE_HEADER}, as a form of any page could",
            where=f"header {PAGE_HEADER}",
            fix=f"use the page of the service, or send {PAGE_HEADER}: 1 from yours",
            status=HTTPStatus.FORBIDDEN,
        )


def _is_of_browser(headers: Headers) -> bool:
    """By what a browser adds of its own accord: forms of those that have no ``Sec-`` headers yet have the others."""
    return any(name in _OF_BROWSERS or name.startswith("sec-") for name in headers)
