"""The client of a schema registry: what an id means is asked once and kept, since it never changes.

Whatever does not answer, or answers with something that is no answer, raises ServiceUnavailable: a query waits for it,
and its records are read when it is back. What is asked for and is not there is an answer: None.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import httpx

from dovetail.broker.address import BrokerAddress, RegistryAddress
from dovetail.broker.registry.protobuf_text import compiled
from dovetail.broker.registry.registered import SchemaType
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.errors import ServiceUnavailable, SourceRefused
from dovetail.changelog.work.interruption import expect_wanted

_NOT_FOUND = 404
_MEDIA = "application/vnd.schemaregistry.v1+json"
_ANSWER_BYTES = 16 << 20
_DEEPEST = 50
_MOST_SCHEMAS = 1000
_NEWEST_S = 10


class _TooMuch(Exception):
    """What a schema refers to, at any depth, is more than any schema needs."""


@dataclass
class _Collected:
    """How much of a schema has come. One that is referred to twice counts twice, as whoever reads it reads it twice."""

    schemas: int = 0
    size: int = 0

    def add(self, text: str, depth: int) -> None:
        self.schemas += 1
        self.size += len(text)
        if depth > _DEEPEST or self.schemas > _MOST_SCHEMAS or self.size > _ANSWER_BYTES:
            raise _TooMuch


class SchemaRegistryReader:
    """A ``SchemaSource``. One for all threads of a process; pickled, it is its address.

    Raises ServiceUnavailable, and SourceRefused where it is answered that this user may not ask.
    """

    def __init__(self, address: RegistryAddress) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._known: dict[int, SchemaDefinition] = {}
        self._newest: dict[str, tuple[int, float]] = {}
        self._client: httpx.Client | None = None

    def __reduce__(self) -> tuple[type[SchemaRegistryReader], tuple[RegistryAddress]]:
        return SchemaRegistryReader, (self.address,)

    def definition(self, schema_id: int) -> SchemaDefinition | None:
        known = self._known.get(schema_id)
        if known is not None:
            return known
        found = self._request("GET", f"/schemas/ids/{schema_id}")
        if found is None:
            return None
        made = self._known[schema_id] = self._whole(found)
        return made

    def newest(self, subject: str) -> int | None:
        """As it was within the last seconds; the one that was while the registry does not answer."""
        known = self._newest.get(subject)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        try:
            return self.latest(subject)
        except ServiceUnavailable:
            if known is None:
                raise
            return known[0]

    def latest(self, subject: str) -> int | None:
        """As ``newest``, as it is now."""
        answer = self._request("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        if answer is None:
            self._newest.pop(subject, None)
            return None
        found = _number(answer, "id", self._where)
        self._newest[subject] = found, time.monotonic() + _NEWEST_S
        return found

    def registered(self, subject: str, definition: SchemaDefinition) -> int:
        """The id of ``definition``, registered under ``subject`` where it was not. Raises SourceRefused where the
        registry does not take it.
        """
        body = {"schema": definition.text, "schemaType": definition.kind}
        found = self._request("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        self._newest.pop(subject, None)
        if found is None:
            raise self._nonsense("404 to a schema that is registered")
        return _number(found, "id", self._where)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    @property
    def _where(self) -> str:
        return f"schema registry {self.address.url}"

    def _whole(self, found: Mapping[str, Any]) -> SchemaDefinition:
        """One that is beyond the bounds is a definition of nothing: its values are rejected, and none is waited for."""
        try:
            made = self._definition(found, _Collected())
        except _TooMuch:
            return SchemaDefinition(str(found.get("schemaType") or SchemaType.AVRO.value), "")
        return replace(made, compiled=compiled(made)) if made.kind == SchemaType.PROTOBUF else made

    def _definition(self, found: Mapping[str, Any], collected: _Collected, depth: int = 0) -> SchemaDefinition:
        kind, text = found.get("schemaType") or SchemaType.AVRO.value, found.get("schema")
        references = found.get("references") or []
        if not isinstance(text, str) or not isinstance(kind, str) or not isinstance(references, list):
            raise self._nonsense("no schema")
        collected.add(text, depth)
        return SchemaDefinition(kind, text, tuple(self._referred(one, collected, depth) for one in references))

    def _referred(self, one: Any, collected: _Collected, depth: int) -> tuple[str, SchemaDefinition]:
        match one:
            case {"name": str(name), "subject": str(subject), "version": int(version)}:
                path = f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true"
                found = self._request("GET", path)
                if found is None:
                    raise self._nonsense(f"no version {version} of {subject}, which a schema refers to")
                return name, self._definition(found, collected, depth + 1)
        raise self._nonsense("a reference without name, subject and version")

    def _request(self, method: str, path: str, body: Any = None) -> Mapping[str, Any] | None:
        """The members of the answer; None where there is no such thing."""
        # Records of strangers may name as many schemas as there are records.
        expect_wanted()
        try:
            with self._connected().stream(method, self.address.url.rstrip("/") + path, json=body) as answer:
                text = self._read(answer)
        except (httpx.HTTPError, ssl.SSLError) as fault:
            reason = f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
            raise self._away(f"the schema registry does not answer: {reason}") from None
        if answer.status_code in (401, 403, 407):
            raise SourceRefused(
                f"the schema registry refuses who asks: {answer.status_code}",
                where=self._where,
                fix="set DOVETAIL_SCHEMA_REGISTRY_USER and DOVETAIL_SCHEMA_REGISTRY_PASSWORD",
            )
        members = self._members(answer.status_code, text)
        if answer.status_code == _NOT_FOUND and _is_missing(members):
            return None
        if answer.status_code in (409, 422):
            raise SourceRefused(
                f"the schema registry does not take the schema: {str(members.get('message'))[:500]}",
                where=f"{self._where} {path}",
                fix="give the view another topic, or set the compatibility of the subject",
            )
        if answer.status_code != httpx.codes.OK:
            raise self._nonsense(f"status {answer.status_code}")
        return members

    def _read(self, answer: httpx.Response) -> bytes:
        """As it came, so that nothing is unpacked, and no further than the bounds of size and time."""
        ends, text = time.monotonic() + self.address.timeout_s, bytearray()
        for part in answer.iter_raw():
            text += part
            if len(text) > _ANSWER_BYTES:
                raise self._nonsense(f"more than {_ANSWER_BYTES:,} bytes")
            if time.monotonic() > ends:
                raise self._away(f"the schema registry has not answered within {self.address.timeout_s:g} s")
        return bytes(text)

    def _members(self, status: int, text: bytes) -> Mapping[str, Any]:
        try:
            members = json.loads(text)
        except (ValueError, RecursionError):
            members = None
        if not isinstance(members, dict):
            raise self._nonsense(f"status {status} and no JSON object")
        return members

    def _connected(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                ca = self.address.ca_location
                trusted = ssl.create_default_context(cafile=ca) if ca else True
                login = (self.address.user, self.address.password) if self.address.user else None
                self._client = httpx.Client(
                    auth=login,
                    verify=trusted,
                    timeout=self.address.timeout_s,
                    headers={"Accept": f"{_MEDIA}, */*", "Accept-Encoding": "identity"},
                    # Another host would be handed the login, or asked on behalf of whoever sends there.
                    follow_redirects=False,
                )
            return self._client

    def _away(self, what: str) -> ServiceUnavailable:
        return ServiceUnavailable(what, where=self._where, fix="see that it runs; it is tried again by itself")

    def _nonsense(self, what: str) -> ServiceUnavailable:
        return self._away(f"the schema registry answers with {what}")


def _is_missing(members: Mapping[str, Any]) -> bool:
    """Whether it is the registry that says so, and not a server that stands at its address."""
    return members.get("error_code") in (40401, 40402, 40403, 40404, 40406)


def _number(found: Mapping[str, Any], name: str, where: str) -> int:
    value = found.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ServiceUnavailable(f"the schema registry answers without {name}", where=where, fix="see that it runs")


@lru_cache(maxsize=8)
def _source_at(address: RegistryAddress) -> SchemaRegistryReader:
    return SchemaRegistryReader(address)


def schemas_of(brokers: BrokerAddress) -> SchemaRegistryReader | None:
    """The schemas of a cluster's topics; None where no registry is known. One for all of a process, which keeps what it
    has found.
    """
    return None if brokers.registry is None else _source_at(brokers.registry)
