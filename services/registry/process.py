"""The process of the registry: its port, and how it starts and ends."""

from __future__ import annotations

import asyncio
import logging

from dovetail.runtime.processes.listener import address_of, listening
from dovetail.runtime.settings import Settings
from dovetail.services.registry.application import registry_application
from dovetail.services.registry.protection import expect_protected
from dovetail.services.registry.store import SchemaStore
from dovetail.services.registry.subjects import Subjects
from dovetail.services.serve.connections import MOST_WAITING, ConnectionConfig
from dovetail.services.serve.orderly_server import OrderlyServer

_LOG = logging.getLogger("dovetail.registry")
_REQUESTS = 200
_LAST_WORDS_S = 5


def serve_registry(settings: Settings) -> None:
    """Until SIGTERM or Ctrl-C. Raises StackError for settings by which strangers would get in."""
    expect_protected(settings)
    listener = listening(settings.schema_registry_bind, settings.schema_registry_port, "DOVETAIL_SCHEMA_REGISTRY_BIND")
    store = SchemaStore(settings.data_dir / "registry" / "schemas.db")
    scheme = "http" if settings.schema_registry_tls_certificate is None else "https"
    _LOG.info("listening at %s://%s, schemas in %s", scheme, address_of(listener), store.path)
    config = ConnectionConfig(
        registry_application(Subjects(store), settings),
        headers_s=settings.serve_body_s,
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ssl_certfile=settings.schema_registry_tls_certificate,
        ssl_keyfile=settings.schema_registry_tls_key,
        limit_concurrency=_REQUESTS + MOST_WAITING,
        timeout_graceful_shutdown=_LAST_WORDS_S,
    )
    try:
        asyncio.run(OrderlyServer(config).serve(sockets=[listener]))
    finally:
        store.close()
    _LOG.info("stopped")
