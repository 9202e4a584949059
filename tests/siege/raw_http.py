"""Requests as bytes: what a client's library would not send is sent all the same."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from urllib.parse import quote, urlsplit


def exchange(
    address: str, verb: str, path: str, body: bytes, headers: Mapping[str, str], timeout_s: float
) -> tuple[int, str]:
    """The status and the text of the answer. Raises OSError or HTTPException where there is none."""
    place = urlsplit(address)
    whole = {"Host": place.netloc, "Content-Length": str(len(body)), "Connection": "close", **headers}
    lines = [f"{verb} {quote(path, safe='/?=%&.')} HTTP/1.1", *(f"{name}: {value}" for name, value in whole.items())]
    with socket.create_connection((str(place.hostname), place.port or 80), timeout_s) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        response = HTTPResponse(connection, method=verb)
        response.begin()
        return response.status, response.read().decode(errors="replace")


NO_ANSWER = (OSError, HTTPException)
