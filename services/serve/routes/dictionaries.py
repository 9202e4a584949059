"""``POST /v1/dictionaries/{name}/refresh``: rows of a dictionary that are to be asked of its source again."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import Field

from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.serve.dependencies import TheService, Writer, sent
from dovetail.services.serve.refusals import answered
from dovetail.services.serve.routes.answers import RefreshAnswer
from dovetail.services.serve.statements.members import Members
from dovetail.services.session import Session
from dovetail.services.session.dictionaries.dictionary_statements import dictionary, keys_of, refresh

ROUTER = APIRouter()


class Keys(Members):
    keys: list[str] | None = Field(
        default=None,
        title="array of texts",
        min_length=1,
        description="these alone, a key of several columns as the text of an array; without it all rows",
        examples=[["p1"]],
    )


@ROUTER.post(
    "/v1/dictionaries/{name}/refresh",
    summary="Have the workers forget rows of a dictionary: the next lookup asks its source.",
    response_model=RefreshAnswer,
    openapi_extra=Keys.described(),
)
async def refreshed(
    service: TheService,
    user: Writer,
    name: Annotated[str, Path(description="a dictionary")],
    body: Annotated[Keys, sent(Keys)],
) -> Response:
    def ask(session: Session) -> dict[str, Any]:
        definition = definition_of(dictionary(session.context, name))
        answers = refresh(session.context, name, None if body.keys is None else keys_of(definition, body.keys))
        return {"name": name, "keys": body.keys, "workers": len(answers.given)}

    return answered(await service.desk.answer(user, ask))
