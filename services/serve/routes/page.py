"""``GET /``: the page, and its files. Nothing of it is about data: what it shows it asks for, as any client does."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response

from dovetail.services.serve.refusals import RequestRefused
from dovetail.services.serve.security_middleware import PAGE
from dovetail.sql.syntax.redact import quoted

FOLDER = Path(__file__).parent.parent / "page"
_ALLOWED = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    # Text never becomes markup: a browser that knows this refuses innerHTML itself.
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
POLICY = "; ".join(f"{what} {whence}" for what, whence in _ALLOWED.items())
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES = {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in FOLDER.rglob("*") if path.suffix in _TYPES}
"""Read once: what is asked for names an entry, never a path."""
ROUTER = APIRouter()


def _answers(*suffixes: str) -> dict[int | str, dict[str, Any]]:
    """As OpenAPI has them."""
    return {200: {"content": {_TYPES[suffix]: {} for suffix in suffixes}}}


@ROUTER.get("/", summary="The page, for people.", response_class=Response, responses=_answers(".html"))
async def page() -> Response:
    return _file("index.html")


@ROUTER.get(
    f"{PAGE}{{folder}}/{{file}}",
    summary="A file of the page.",
    response_class=Response,
    responses=_answers(".css", ".js", ".svg"),
)
async def page_file(folder: str, file: str) -> Response:
    return _file(f"{folder}/{file}")


def _file(name: str) -> Response:
    found = _FILES.get(name)
    if found is None:
        raise RequestRefused(
            f"the page has no file {quoted(name)}", where="page", fix="GET / is the page", status=HTTPStatus.NOT_FOUND
        )
    kind = f"{_TYPES[Path(name).suffix]}; charset=utf-8"
    return Response(found, headers={"Content-Security-Policy": POLICY, "Content-Type": kind})
