"""``GET /``: the page, and its files. Nothing of it is about data: what it shows it asks for, as any client does."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from dovetail.services.serve.endpoints import Endpoint, Parameter
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


async def page(_request: Request) -> Response:
    return _file("index.html")


async def page_file(request: Request) -> Response:
    return _file(f"{request.path_params['folder']}/{request.path_params['file']}")


def _file(name: str) -> Response:
    found = _FILES.get(name)
    if found is None:
        raise RequestRefused(
            f"the page has no file {quoted(name)}", where="page", fix="GET / is the page", status=HTTPStatus.NOT_FOUND
        )
    kind = f"{_TYPES[Path(name).suffix]}; charset=utf-8"
    return Response(found, headers={"Content-Security-Policy": POLICY, "Content-Type": kind})


_ANSWERS = {"text/html": "the page"}
_ANY = {"text/javascript": "modules", "text/css": "styles", "image/svg+xml": "its sign"}
ROUTES = (
    Endpoint("GET", "/", "The page, for people.", page, role=None, answers=_ANSWERS),
    Endpoint(
        "GET",
        f"{PAGE}{{folder}}/{{file}}",
        "A file of the page.",
        page_file,
        role=None,
        parameters=(Parameter("folder", "path", "a folder of the page"), Parameter("file", "path", "a file in it")),
        answers=_ANY,
    ),
)
