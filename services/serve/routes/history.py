"""``GET /v1/history``: how the queries are, and have been in the last hour. ``GET /v1/user``: who asks."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Response

from dovetail.services.serve.dependencies import Reader, TheService
from dovetail.services.serve.refusals import RequestRefused, answered
from dovetail.services.serve.routes.answers import HistoryAnswer, SeriesAnswer, UserAnswer

ROUTER = APIRouter()


@ROUTER.get(
    "/v1/history", summary="How each query is, with its rates over the last hour.", response_model=HistoryAnswer
)
async def history(service: TheService, _user: Reader) -> Response:
    return answered(service.watcher.document())


@ROUTER.get("/v1/history/{name}", summary="The figures of a query over the last hour.", response_model=SeriesAnswer)
async def history_of(
    service: TheService, _user: Reader, name: Annotated[str, Path(description="a query: a view, or a fragment of one")]
) -> Response:
    found = service.watcher.series(name)
    if found is None:
        raise RequestRefused(
            f'no query "{name}" has been seen',
            where="history",
            fix="GET /v1/history names those that have; one that is new is seen in a moment",
            status=HTTPStatus.NOT_FOUND,
        )
    return answered(found)


@ROUTER.get("/v1/user", summary="Who asks, and in which role.", response_model=UserAnswer)
async def user(service: TheService, user: Reader) -> Response:
    return answered({"name": user.name, "role": user.role.value, "open": service.authenticator.is_open})
