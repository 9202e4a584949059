"""A connection: how long it may take to ask, and what is said to one that does not speak HTTP."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dovetail.services.serve.refusals import RequestRefused, refusal

MOST_WAITING = 200
"""Connections that have asked nothing yet, or not to the end of the headers."""


class ConnectionConfig(uvicorn.Config):
    """With the time for the headers of a request, in seconds, and the connections that have not sent theirs."""

    def __init__(self, app: Any, *, headers_s: float, **options: Any) -> None:
        super().__init__(app, http=HttpConnection, **options)
        self.headers_s = headers_s
        self.waiting: dict[HttpConnection, asyncio.TimerHandle] = {}
        """The one that has waited the longest comes first."""


class HttpConnection(H11Protocol):
    """Ends where headers do not come in time; where too many wait for theirs, the oldest of them gives way.

    uvicorn alone waits forever, and answers 503 to everybody once enough connections are open.
    """

    config: ConnectionConfig

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        # Also where the body goes on that nobody reads: its sender is not waited for either.
        self._wait()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        what = "what has come is no request of HTTP/1.1, or the head of one that is too long"
        self._refuse(RequestRefused(what, where="the connection", fix="ask with a client of HTTP, such as curl"))

    def _wait(self) -> None:
        self._wait_no_more()
        waiting = self.config.waiting
        while len(waiting) >= MOST_WAITING:
            next(iter(waiting)).give_way()
        waiting[self] = self.loop.call_later(self.config.headers_s, self._overdue)

    def _wait_no_more(self) -> None:
        timer = self.config.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def give_way(self) -> None:
        """Its place is for another one."""
        self._wait_no_more()
        self.transport.close()

    def _overdue(self) -> None:
        self._wait_no_more()
        begun, _ = self.conn.trailing_data
        if not begun:
            self.transport.close()
            return
        what = f"the headers of the request did not come within {self.config.headers_s:g} s"
        fix = "send them at once; or set DOVETAIL_SERVE_BODY_S to more seconds"
        self._refuse(RequestRefused(what, where="the connection", fix=fix, status=HTTPStatus.REQUEST_TIMEOUT))

    def _refuse(self, error: RequestRefused) -> None:
        """Says so, where an answer is still owed, and ends the connection."""
        if self.transport.is_closing():
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = refusal(error, "")
            headers = [*answer.raw_headers, (b"connection", b"close")]
            reason = HTTPStatus(answer.status_code).phrase.encode()
            head = h11.Response(status_code=answer.status_code, headers=headers, reason=reason)
            events = (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage())
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()
