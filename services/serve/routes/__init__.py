"""What is asked over HTTP, and answered."""

from dovetail.services.serve.routes import (
    changes,
    described,
    dictionaries,
    graph,
    health,
    history,
    listings,
    page,
    sql,
    waits,
)

ENDPOINTS = described.with_description(
    (
        *page.ROUTES,
        *sql.ROUTES,
        *changes.ROUTES,
        *waits.ROUTES,
        *listings.ROUTES,
        *graph.ROUTES,
        *history.ROUTES,
        *dictionaries.ROUTES,
        *health.ROUTES,
    )
)

__all__ = ["ENDPOINTS"]
