"""``/health``: the service answers. ``/ready``: so do the catalog and Kafka. ``/metrics``: what it has done."""

from __future__ import annotations

from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from dovetail.services.serve.endpoints import Endpoint
from dovetail.services.serve.refusals import answered
from dovetail.services.serve.service import service_of


async def health(_request: Request) -> Response:
    return answered({"healthy": True})


async def ready(request: Request) -> Response:
    """What is missing is for those who may look: the log has it, and SHOW QUERIES."""
    found = await service_of(request).readiness.is_ready()
    return answered({"ready": found}, HTTPStatus.OK if found else HTTPStatus.SERVICE_UNAVAILABLE)


async def metrics(request: Request) -> Response:
    return Response(service_of(request).figures.page(), media_type=CONTENT_TYPE_LATEST)


ROUTES = (
    Endpoint("GET", "/health", "Whether the service answers.", health, role=None),
    Endpoint("GET", "/ready", "Whether the catalog and Kafka answer it; 503 where not.", ready, role=None),
    Endpoint("GET", "/metrics", "Figures of the service, for Prometheus.", metrics, answers={"text/plain": "metrics"}),
)
