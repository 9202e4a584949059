"""The process: its port, TLS, and how it starts and ends."""

from __future__ import annotations

import asyncio
import logging
import socket

from dovetail.changelog.errors import StackError
from dovetail.runtime.processes.engine_bounds import bounded_engine
from dovetail.runtime.processes.listener import address_of, listening
from dovetail.runtime.settings import Settings
from dovetail.services.serve.access.first_admin import add_first_admin
from dovetail.services.serve.access.users import UserFile
from dovetail.services.serve.application import application
from dovetail.services.serve.connections import MOST_WAITING, ConnectionConfig
from dovetail.services.serve.orderly_server import OrderlyServer
from dovetail.services.serve.security_middleware import is_loopback
from dovetail.services.serve.service import Service
from dovetail.services.serve.statements.statement_pool import OpenSession
from dovetail.services.session import Session

_LOG = logging.getLogger("dovetail.serve")
_FURTHER_REQUESTS = 200
"""Besides those that follow changes."""
_LAST_WORDS_S = 5


def serve(settings: Settings, open_session: OpenSession | None = None) -> None:
    """Until SIGTERM or Ctrl-C. Raises StackError for settings by which strangers would get in."""
    add_first_admin(settings)
    expect_protected(settings)
    listener = listening(settings.serve_bind, settings.serve_port, "DOVETAIL_SERVE_BIND")
    # Of a client that takes nothing: the kernel ends the connection, which the service alone could not.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(settings.serve_send_s * 1000))
    service = Service.of(settings, open_session or (lambda say, confirm: Session.open(settings, say, confirm)))
    server = Server(service)
    _LOG.info("%s", _announcement(settings, listener, service))
    with bounded_engine(settings, threads=settings.serve_statements):
        asyncio.run(server.serve(sockets=[listener]))
    _LOG.info("stopped")


class Server(OrderlyServer):
    """Before it ends, those who follow changes are told."""

    def __init__(self, service: Service) -> None:
        self._service = service
        settings = service.settings
        super().__init__(
            ConnectionConfig(
                application(service),
                headers_s=settings.serve_body_s,
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                ssl_certfile=settings.serve_tls_certificate,
                ssl_keyfile=settings.serve_tls_key,
                limit_concurrency=settings.serve_tails + _FURTHER_REQUESTS + MOST_WAITING,
                timeout_graceful_shutdown=_LAST_WORDS_S,
            )
        )

    def stop(self) -> None:
        self._service.fan_out.stop()
        super().stop()


def expect_protected(settings: Settings) -> None:
    """Raises StackError for a port that others reach, without users or without TLS; for half of a certificate, and for
    a file that is named and not there.
    """
    certificate, key = settings.serve_tls_certificate, settings.serve_tls_key
    if (certificate is None) != (key is None):
        raise StackError(
            "of DOVETAIL_SERVE_TLS_CERTIFICATE and DOVETAIL_SERVE_TLS_KEY one is set",
            where="dovetail serve",
            fix="set both; or neither, for no TLS",
        )
    for path in (certificate, key):
        if path is not None and not path.is_file():
            raise StackError(f"there is no file {path}", where="TLS of dovetail serve", fix="name one that is there")
    users = UserFile.of(settings).read()
    if is_loopback(settings.serve_bind) or settings.serve_unprotected == "on":
        return
    missing = [*(["users"] if users is None else []), *(["TLS"] if certificate is None else [])]
    if missing:
        raise StackError(
            f"the service would listen at {settings.serve_bind}, beyond this machine, without {' or '.join(missing)}",
            where="DOVETAIL_SERVE_BIND",
            fix="dovetail user add NAME --role admin, DOVETAIL_SERVE_TLS_CERTIFICATE and DOVETAIL_SERVE_TLS_KEY;"
            " or bind it to 127.0.0.1; DOVETAIL_SERVE_UNPROTECTED=on where something else keeps strangers out",
        )


def _announcement(settings: Settings, listener: socket.socket, service: Service) -> str:
    scheme = "http" if settings.serve_tls_certificate is None else "https"
    who = "for users with a token"
    if service.authenticator.is_open:
        who = "no login required: dovetail user add NAME --role admin makes it ask for a token"
    return f"listening at {scheme}://{address_of(listener)}, {who}"
