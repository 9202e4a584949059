"""``POST /v1/dictionaries/{name}/refresh``: rows of a dictionary that are to be asked of its source again."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.role import Role
from dovetail.services.serve.endpoints import Endpoint, Parameter
from dovetail.services.serve.refusals import JSON, RequestRefused, answered
from dovetail.services.serve.service import service_of, user_of
from dovetail.services.serve.statements.bodies import body_of, media_type_of, members_of
from dovetail.services.session import Session
from dovetail.services.session.dictionaries.dictionary_statements import dictionary, keys_of, refresh

_MEMBERS = ("keys",)


async def refreshed(request: Request) -> Response:
    """Raises RequestRefused for keys that are no texts."""
    service, user, name = service_of(request), user_of(request), request.path_params["name"]
    media_type_of(request, (JSON,))
    body = await body_of(request, service.settings.serve_body_bytes, service.settings.serve_body_s)
    keys = members_of(body, _MEMBERS).get("keys")
    texts = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
    if keys is not None and not (texts and keys):
        raise RequestRefused(
            'the member "keys" is no array of texts',
            where="body",
            fix='send {"keys": ["p1"]}, a key of several columns as the text of an array; or {} for all rows',
        )

    def ask(session: Session) -> dict[str, Any]:
        definition = definition_of(dictionary(session.context, name))
        answers = refresh(session.context, name, None if keys is None else keys_of(definition, keys))
        return {"name": name, "keys": keys, "workers": len(answers.given)}

    return answered(await service.desk.answer(user, ask))


_KEYS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "keys": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "these alone; else all"}
    },
}
ROUTES = (
    Endpoint(
        "POST",
        "/v1/dictionaries/{name}/refresh",
        "Have the workers forget rows of a dictionary: the next lookup asks its source.",
        refreshed,
        role=Role.WRITER,
        parameters=(Parameter("name", "path", "a dictionary"),),
        body={JSON: _KEYS},
    ),
)
