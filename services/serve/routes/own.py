"""What the service says of itself: whether it answers, whether it can work, what it has done, what may be asked."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from dovetail.services.serve.dependencies import Reader, TheService
from dovetail.services.serve.refusals import answered
from dovetail.services.serve.routes.answers import HealthAnswer, ReadyAnswer

ROUTER = APIRouter()


@ROUTER.get("/health", summary="Whether the service answers.", response_model=HealthAnswer)
async def health() -> Response:
    return answered({"healthy": True})


@ROUTER.get(
    "/ready",
    summary="Whether the catalog and Kafka answer it; 503 where not.",
    response_model=ReadyAnswer,
    responses={503: {"model": ReadyAnswer}},
)
async def ready(service: TheService) -> Response:
    # What is missing is for those who may look: the log has it, and SHOW QUERIES.
    found = await service.readiness.is_ready()
    return answered({"ready": found}, HTTPStatus.OK if found else HTTPStatus.SERVICE_UNAVAILABLE)


@ROUTER.get(
    "/metrics",
    summary="Figures of the service, for Prometheus.",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
async def metrics(service: TheService, _user: Reader) -> Response:
    return Response(service.figures.page(), media_type=CONTENT_TYPE_LATEST)


@ROUTER.get("/openapi.json", summary="This description.", response_model=dict[str, Any])
async def description(request: Request) -> Response:
    return answered(request.app.openapi())
