"""What is asked over HTTP, and answered."""

from services.serve.routes import changes, described, graph, health, history, listings, page, sql

ENDPOINTS = described.with_description(
    (
        *page.ROUTES,
        *sql.ROUTES,
        *changes.ROUTES,
        *listings.ROUTES,
        *graph.ROUTES,
        *history.ROUTES,
        *health.ROUTES,
    )
)

__all__ = ["ENDPOINTS"]
