"""The process of the registry: its port, and how it starts and ends."""

from __future__ import annotations

import logging

import uvicorn

from runtime.processes.listener import address_of, listening
from runtime.settings import Settings
from services.registry.application import registry_application
from services.registry.store import SchemaStore
from services.registry.subjects import Subjects

_LOG = logging.getLogger("dovetail.registry")
_CONNECTIONS = 200
_LAST_WORDS_S = 5


def serve_registry(settings: Settings) -> None:
    """Until SIGTERM or Ctrl-C."""
    listener = listening(settings.schema_registry_bind, settings.schema_registry_port, "DOVETAIL_SCHEMA_REGISTRY_BIND")
    store = SchemaStore(settings.data_dir / "registry" / "schemas.db")
    _LOG.info("listening at http://%s, schemas in %s", address_of(listener), store.path)
    config = uvicorn.Config(
        registry_application(Subjects(store), settings),
        http="h11",
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_LAST_WORDS_S,
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        store.close()
    _LOG.info("stopped")
