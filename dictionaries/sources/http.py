"""A web service that gives rows as JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from functools import cached_property

import httpx
import orjson

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, SourceRefused
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.definition.secrets import password_of
from dovetail.dictionaries.outside.http_transport import PlaceTransport, bounded_content
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.sources.source_parameters import source_parameters
from dovetail.dictionaries.sources.source_rows import ROWS_PER_PIECE, SourceRowReader, in_pieces
from dovetail.dictionaries.sources.text_formats import parse_rows

_LINE = orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_DATETIME
_PASSING = frozenset({408, 425, 429})
_MOST_REDIRECTIONS = 10
_FIX_OF_URL = "URL 'http://host:port/path'"


class HttpSource:
    """SOURCE(HTTP(URL FORMAT METHOD USER PASSWORD ..)).

    A lookup posts its keys, at most 1,000, as JSON objects by lines (``{"id":1}``), answered with their rows. With
    METHOD 'get' the address gives all rows, and those that were not asked for are dropped. A whole load is a GET.
    """

    def __init__(self, definition: Definition, outside: Outside) -> None:
        self.definition = definition
        self.outside = outside
        self.parameters = source_parameters(definition)
        url = self._checked_url()
        self._url = url.copy_with(username=None, password=None)
        self._address_login = (url.username, url.password)
        # Without the query of the address, where keys of services like to stand.
        self.where = f'dictionary "{definition.name}", {self._url.copy_with(query=None, fragment=None)}'
        self._format = str(self.parameters["format"]).lower()
        self._reader = SourceRowReader(definition, self.where)

    def _checked_url(self) -> httpx.URL:
        try:
            return httpx.URL(str(self.parameters["url"]))
        except httpx.InvalidURL as error:
            raise SourceRefused(
                "the address is not valid", where=f'dictionary "{self.definition.name}"', fix=_FIX_OF_URL
            ) from error

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        if self.parameters["method"] == "get":
            return self._reader.matching(by, keys, self._rows("GET", None, "timeout"))
        return self._reader.fetch_in_statements(
            by, keys, lambda chunk: self._rows("POST", b"".join(_line(by, key) for key in chunk), "timeout")
        )

    def load(self) -> Iterator[list[Row]]:
        yield from in_pieces(self._reader.read(self._rows("GET", None, "load_timeout")), ROWS_PER_PIECE)

    def check(self) -> None:
        """Whether the service answers; a lookup of no keys for METHOD 'post', else all rows."""
        if self.parameters["method"] == "get":
            self._reader.read(self._rows("GET", None, "timeout"))
        else:
            self._rows("POST", b"", "timeout")

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()
            del self._client, self._transport

    def _rows(self, method: str, content: bytes | None, patience: str) -> list[tuple[object, ...]]:
        timeout = httpx.Timeout(float(self.parameters[patience]), connect=float(self.parameters["connect_timeout"]))
        request = self._client.build_request(
            method,
            self._url,
            content=content,
            timeout=timeout,
            headers={"Content-Type": "application/x-ndjson"} if content is not None else {},
        )
        return parse_rows(
            self._answered(request, float(self.parameters[patience])),
            self._format,
            self.definition.columns,
            self.where,
        )

    def _answered(self, request: httpx.Request, seconds: float) -> bytes:
        """The body of the answer, which is whole within ``seconds``."""
        try:
            with self._transport.within(seconds), closing(self._response(request)) as response:
                response.raise_for_status()
                return bounded_content(response, self.outside.max_bytes, self.where)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._fault(error) from error

    def _response(self, request: httpx.Request) -> httpx.Response:
        """The one that redirects nowhere, its body not yet read. Bodies of redirections are not read at all."""
        for _ in range(_MOST_REDIRECTIONS):
            response = self._client.send(request, stream=True, auth=self._login)
            if response.next_request is None:
                return response
            response.close()
            request = response.next_request
        raise httpx.TooManyRedirects(f"more than {_MOST_REDIRECTIONS} redirections", request=request)

    @cached_property
    def _transport(self) -> PlaceTransport:
        return PlaceTransport(self._url, self.outside.network, self.where)

    @cached_property
    def _client(self) -> httpx.Client:
        # No ~/.netrc and no proxy of the environment: a statement has the rights of its writer alone.
        return httpx.Client(
            transport=self._transport,
            trust_env=False,
            headers={"Accept-Encoding": "gzip"},
        )

    @property
    def _login(self) -> httpx.BasicAuth | None:
        user, password = self._address_login
        user = str(self.parameters.get("user", user))
        password = password_of(self.parameters, self.where, self.outside) or password
        return httpx.BasicAuth(user, password) if user or password else None

    def _fault(self, error: Exception) -> DovetailError:
        if isinstance(error, httpx.HTTPStatusError):
            status = error.response.status_code
            what = f"the service answers {status} {error.response.reason_phrase}"
            if status < 500 and status not in _PASSING:
                fix = "correct USER and PASSWORD" if status in (401, 403) else "correct URL and METHOD of the source"
                return SourceRefused(what, where=self.where, fix=fix)
        elif isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
            return SourceRefused("the address is not valid", where=self.where, fix=_FIX_OF_URL)
        else:
            what = f"the service does not answer: {type(error).__name__}"
        return ServiceUnavailable(
            what, where=self.where, fix=f"see that it runs; TIMEOUT is {self.parameters['timeout']:g} s"
        )


def _line(by: Sequence[str], key: Key) -> bytes:
    values = key if isinstance(key, tuple) else (key,)
    return orjson.dumps(dict(zip(by, values, strict=True)), default=_text, option=_LINE)


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return str(value.replace(tzinfo=None))
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
