"""What is asked over HTTP, and answered."""

from fastapi.routing import APIRoute

from dovetail.services.serve.routes import changes, dictionaries, graph, history, listings, own, page, sql, waits

ROUTERS = tuple(one.ROUTER for one in (page, sql, changes, waits, listings, graph, history, dictionaries, own))
ROUTES = tuple(route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute))

__all__ = ["ROUTERS", "ROUTES"]
