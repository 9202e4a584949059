"""The body of a request: so many bytes, within so much time, of a type that says what they are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from functools import partial
from http import HTTPStatus

from pydantic import AfterValidator
from starlette.requests import ClientDisconnect, Request

from dovetail.changelog.wording import counted
from dovetail.services.serve.refusals import RequestRefused

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


async def body_of(request: Request, most_bytes: int, within_s: float) -> bytes:
    """Raises RequestRefused for more than ``most_bytes``, before they are read, 413; for what does not arrive, 408."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most_bytes:
        raise _too_large(int(length), most_bytes)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RequestRefused(
            "the body is compressed",
            where="header Content-Encoding",
            fix="send it as it is",
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    body = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for part in request.stream():
                body += part
                if len(body) > most_bytes:
                    raise _too_large(len(body), most_bytes)
    except (TimeoutError, ClientDisconnect):
        raise RequestRefused(
            f"{counted(len(body), 'byte')} of the body came within {within_s:g} s, and not the rest",
            where="body",
            fix="send it at once; DOVETAIL_SERVE_BODY_S is the longest wait",
            status=HTTPStatus.REQUEST_TIMEOUT,
        ) from None
    return bytes(body)


def _too_large(size: int, most: int) -> RequestRefused:
    return RequestRefused(
        f"the body has {counted(size, 'byte')} or more, and {most:,} are the most",
        where="body",
        fix="send fewer statements at once, rows through Kafka itself; DOVETAIL_SERVE_BODY_BYTES is the limit",
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    )


def media_type_of(request: Request, known: Collection[str]) -> str:
    """Raises RequestRefused, 415, for one that is not ``known``: of a form of a page, which asks nobody, for one."""
    given = request.headers.get("content-type", "")
    kind, _, parameters = given.partition(";")
    charset = re.search(r"charset\s*=\s*\"?([\w-]+)", parameters, re.IGNORECASE)
    if kind.strip().lower() in known and (charset is None or charset[1].lower() in ("utf-8", "utf8", "us-ascii")):
        return kind.strip().lower()
    raise RequestRefused(
        f"the body is {given!r}" if given else "the body has no type",
        where="header Content-Type",
        fix=f"send one of: {', '.join(sorted(known))}; in UTF-8",
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    )


def text_of(body: bytes) -> str:
    """Raises RequestRefused where it is not UTF-8, with the place."""
    try:
        return body.decode()
    except UnicodeDecodeError as failure:
        raise RequestRefused(
            f"the body is not UTF-8: byte {failure.start} is {body[failure.start]:#04x}",
            where=f"body, byte {failure.start}",
            fix="send UTF-8",
        ) from None


def plain_text(text: str, where: str) -> str:
    """The text. Raises RequestRefused for a control character, with its place: it shows nowhere, and says something
    else than it seems to.
    """
    found = _CONTROL.search(text)
    if found is None:
        return text
    before = text[: found.start()]
    line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
    raise RequestRefused(
        f"there is a control character, U+{ord(found[0]):04X}",
        where=f"{where}, line {line}, column {column}",
        fix=f"leave it out; inside of a text write it as char({ord(found[0])})",
    )


def plain(where: str) -> AfterValidator:
    """Of a parameter or member that is a plain text."""
    return AfterValidator(partial(plain_text, where=where))
