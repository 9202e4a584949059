"""What is asked over HTTP, and answered."""

from services.serve.routes import changes, health, sql

ENDPOINTS = (*sql.ROUTES, *changes.ROUTES, *health.ROUTES)

__all__ = ["ENDPOINTS"]
