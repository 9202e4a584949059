"""What is asked over HTTP, and answered."""

from services.serve.routes import changes, described, graph, health, listings, sql

ENDPOINTS = described.with_description((*sql.ROUTES, *changes.ROUTES, *listings.ROUTES, *graph.ROUTES, *health.ROUTES))

__all__ = ["ENDPOINTS"]
