"""Answers that are sent as they are made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from starlette.responses import StreamingResponse
from starlette.types import Send

_LOG = logging.getLogger("dovetail.serve")


class Streamed(StreamingResponse):
    """``chunks``, each within ``send_s``: a client that takes nothing for so long is cut off, and what makes the chunks
    is closed.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        send_s: float,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(chunks, media_type=media_type, headers=headers)
        self._chunks = chunks
        self._send_s = send_s

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                try:
                    async with asyncio.timeout(self._send_s):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                except TimeoutError:
                    _LOG.info("a client has taken nothing for %g s, and is cut off", self._send_s)
                    return
        await send({"type": "http.response.body", "body": b"", "more_body": False})
