"""``GET /openapi.json``: the description of all the others, and of itself."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from dovetail.services.serve.endpoints import Endpoint
from dovetail.services.serve.openapi import description
from dovetail.services.serve.refusals import answered


def with_description(endpoints: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """The endpoints, and the one that describes them."""

    async def answer(_request: Request) -> Response:
        return answered(description(everything))

    own = Endpoint("GET", "/openapi.json", "This description.", answer, role=None)
    everything = (*endpoints, own)
    return everything
