"""Encryption and login of the client of a Faust app, which is aiokafka's: ``broker.address`` in its words."""

from __future__ import annotations

import ssl
import time
from typing import Any

import faust
import httpx
from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped]

from dovetail.broker.address import BrokerSecurity, PasswordLogin, Tls, TokenLogin
from dovetail.changelog.errors import ServiceUnavailable

_CALL_S = 10.0
_EARLY_S = 10.0


def credentials(security: BrokerSecurity) -> Any:
    """``broker_credentials`` of ``faust.App``; None where the brokers ask for nothing."""
    context = None if security.tls is None else _context(security.tls)
    match security.login:
        case None:
            return None if context is None else faust.SSLCredentials(context)
        case PasswordLogin() as login:
            return faust.SASLCredentials(
                username=login.username, password=login.password, mechanism=login.mechanism, ssl_context=context
            )
        case TokenLogin() as login:
            return faust.OAuthCredentials(oauth_cb=Tokens(login), ssl_context=context)


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca or None)
    if tls.certificate:
        context.load_cert_chain(tls.certificate, tls.key, tls.key_password or None)
    if not tls.verify_host:
        context.check_hostname = False
    return context


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """The token of a client, asked for anew a little before it ends."""

    def __init__(self, login: TokenLogin) -> None:
        self._login = login
        self._token = ""
        self._until_s = 0.0

    async def token(self) -> str:
        if time.monotonic() >= self._until_s:
            await self._ask()
        return self._token

    async def _ask(self) -> None:
        wanted = {"grant_type": "client_credentials", **({"scope": self._login.scope} if self._login.scope else {})}
        try:
            async with httpx.AsyncClient(timeout=_CALL_S) as client:
                answer = await client.post(
                    self._login.endpoint, data=wanted, auth=(self._login.client_id, self._login.client_secret)
                )
                answer.raise_for_status()
                given = answer.json()
                self._token = given["access_token"]
                self._until_s = time.monotonic() + float(given.get("expires_in", 0)) - _EARLY_S
        except (httpx.HTTPError, ValueError, KeyError) as failure:
            raise ServiceUnavailable(
                f"no token for Kafka was given: {type(failure).__name__}", where=self._login.endpoint
            ) from failure
