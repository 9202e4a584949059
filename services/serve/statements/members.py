"""Bodies that are JSON objects: models of their members, which OpenAPI shows, and what is said of one that is wrong."""

from __future__ import annotations

from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from dovetail.services.serve.refusals import JSON, RequestRefused

T = TypeVar("T", bound="Members")


class Members(BaseModel, extra="forbid", strict=True):
    """The members of a body: the ``title`` of each says what it is, ``examples`` and ``description`` what to send."""

    @classmethod
    def read(cls: type[T], body: bytes) -> T:
        """Raises RequestRefused where it is no JSON object, has another member, or one of another type."""
        try:
            found = orjson.loads(body)
            if isinstance(found, dict) and (
                other := next((name for name in found if name not in cls.model_fields), None)
            ):
                raise cls._unknown(other)
            return cls.model_validate(found)
        except orjson.JSONDecodeError as failure:
            where = f"body, line {failure.lineno}, column {failure.colno}"
            raise RequestRefused(f"the body is no JSON: {failure.msg}", where=where, fix=cls._form()) from None
        except ValidationError as failure:
            raise cls._refused(failure) from None

    @classmethod
    def _refused(cls, failure: ValidationError) -> RequestRefused:
        first = failure.errors(include_url=False)[0]
        if not first["loc"]:
            what = f"the body is a JSON {_kind(first['input'])}, and an object is expected"
            return RequestRefused(what, where="body", fix=cls._form())
        name = str(first["loc"][0])
        if first["type"] == "bool_type":
            return RequestRefused(
                f'the member "{name}" is neither true nor false', where="body", fix="give one of them"
            )
        field = cls.model_fields[name]
        [example] = field.examples or [None]
        fix = f"send {orjson.dumps({name: example}).decode()}: {field.description}"
        what = (
            f'there is no member "{name}"' if first["type"] == "missing" else f'the member "{name}" is no {field.title}'
        )
        return RequestRefused(what, where="body", fix=fix)

    @classmethod
    def _unknown(cls, name: str) -> RequestRefused:
        what, fix = f"the body has a member {name!r}, which means nothing here", "its members are: "
        return RequestRefused(what, where="body", fix=fix + ", ".join(cls.model_fields))

    @classmethod
    def _form(cls) -> str:
        return f'send an object: {{"{next(iter(cls.model_fields))}": ..}}'

    @classmethod
    def described(cls, *texts: str) -> dict[str, Any]:
        """As a body of OpenAPI, which may be one of the ``texts`` instead."""
        content: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in texts}
        content[JSON] = {"schema": cls.model_json_schema()}
        return {"requestBody": {"required": True, "content": content}}


def _kind(value: object) -> str:
    names = {list: "array", str: "text", bool: "truth value", int: "number", float: "number"}
    return names.get(type(value), "null")
