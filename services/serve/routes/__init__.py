"""What is asked over HTTP, and answered."""

from services.serve.routes import health, sql

ENDPOINTS = (*sql.ROUTES, *health.ROUTES)

__all__ = ["ENDPOINTS"]
