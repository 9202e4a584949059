"""Clients that go before their answer has begun."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HangUps:
    """An ASGI application that is cancelled when its client goes before the answer has begun; who sends an answer
    notices by itself.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        # One at a time: a body is read no faster than it is used.
        messages: asyncio.Queue[Message] = asyncio.Queue(1)
        begun, gone = asyncio.Event(), asyncio.Event()

        async def sent(message: Message) -> None:
            begun.set()
            await send(message)

        async def listen() -> None:
            while not gone.is_set():
                message = await receive()
                if message["type"] == "http.disconnect":
                    gone.set()
                    if not begun.is_set():
                        work.cancel()
                await messages.put(message)

        work = asyncio.ensure_future(self._app(scope, messages.get, sent))
        listening = asyncio.create_task(listen())
        try:
            await work
        except asyncio.CancelledError:
            if not gone.is_set():
                raise
        finally:
            listening.cancel()
