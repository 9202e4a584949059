"""OpenAPI: the description of all routes, made of the same lines as the routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.services.serve.endpoints import Endpoint, Parameter

VERSION = "3.1.0"
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "what", "where", "fix"],
            "properties": {name: {"type": "string"} for name in ("kind", "what", "where", "fix")},
        }
    },
}


def description(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": VERSION,
        "info": {"title": "Dovetail", "version": "v1", "description": "Joins of Kafka streams in SQL, over HTTP."},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    refused = {
        "description": "what, where, fix",
        "content": _content(["application/json"], "#/components/schemas/Error"),
    }
    answers: dict[str, Any] = {kind: {} for kind in endpoint.answers}
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "responses": {
            "200": {"description": "; ".join(endpoint.answers.values()), "content": answers},
            "4XX": refused,
            "5XX": refused,
        },
        "security": [{"token": []}] if endpoint.role is not None else [],
    }
    if endpoint.role is not None:
        operation["x-role"] = endpoint.role.value
    if endpoint.parameters:
        operation["parameters"] = [_parameter(one) for one in endpoint.parameters]
    if endpoint.body:
        content = {kind: {"schema": schema} for kind, schema in endpoint.body.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _content(kinds: Iterable[str], reference: str) -> dict[str, Any]:
    return {kind: {"schema": {"$ref": reference}} for kind in kinds}


def _parameter(one: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"} | ({"enum": list(one.values)} if one.values else {})
    return {
        "name": one.name,
        "in": one.place,
        "required": one.place == "path",
        "description": one.meaning,
        "schema": schema,
    }
