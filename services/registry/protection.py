"""Who gets in: where the registry may listen, and the user that a request has to name where one is set."""

from __future__ import annotations

import base64
import binascii
import hmac
from http import HTTPStatus

from starlette.datastructures import Headers

from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import Settings
from dovetail.services.serve.refusals import RequestRefused
from dovetail.services.serve.security_middleware import is_loopback

_CHALLENGE = {"WWW-Authenticate": 'Basic realm="dovetail schema registry", charset="UTF-8"'}


def expect_protected(settings: Settings) -> None:
    """Raises StackError for a port that others reach, without a user or TLS; and for half of a certificate or login."""
    certificate, key = settings.schema_registry_tls_certificate, settings.schema_registry_tls_key
    user, password = settings.schema_registry_user, settings.schema_registry_password
    _expect_both(DOVETAIL_SCHEMA_REGISTRY_TLS_CERTIFICATE=certificate, DOVETAIL_SCHEMA_REGISTRY_TLS_KEY=key)
    _expect_both(DOVETAIL_SCHEMA_REGISTRY_USER=user, DOVETAIL_SCHEMA_REGISTRY_PASSWORD=password)
    for path in (certificate, key):
        if path is not None and not path.is_file():
            raise StackError(f"there is no file {path}", where="TLS of the registry", fix="name one that is there")
    if is_loopback(settings.schema_registry_bind) or settings.schema_registry_unprotected == "on":
        return
    missing = [*(["a user"] if user is None else []), *(["TLS"] if certificate is None else [])]
    if missing:
        raise StackError(
            f"the registry would listen at {settings.schema_registry_bind}, beyond this machine,"
            f" without {' or '.join(missing)}",
            where="DOVETAIL_SCHEMA_REGISTRY_BIND",
            fix="set DOVETAIL_SCHEMA_REGISTRY_USER, _PASSWORD, _TLS_CERTIFICATE and _TLS_KEY; or bind it to 127.0.0.1;"
            " DOVETAIL_SCHEMA_REGISTRY_UNPROTECTED=on where something else keeps strangers out",
        )


def _expect_both(**pair: object) -> None:
    if len({value is None for value in pair.values()}) > 1:
        raise StackError(f"of {' and '.join(pair)} one is set", where="the registry", fix="set both, or neither")


def expect_login(headers: Headers, settings: Settings) -> None:
    """Raises RequestRefused, 401, where a user is set and the request does not name it by ``Authorization: Basic``."""
    user, password = settings.schema_registry_user, settings.schema_registry_password
    if user is None or password is None:
        return
    wanted = f"{user}:{password.get_secret_value()}".encode()
    if not hmac.compare_digest(_login(headers.get("authorization", "")), wanted):
        raise RequestRefused(
            "the registry asks who calls, and the login is not that of its user",
            where="header Authorization",
            fix="send DOVETAIL_SCHEMA_REGISTRY_USER and _PASSWORD, clients of Confluent by basic.auth.user.info",
            status=HTTPStatus.UNAUTHORIZED,
            headers=_CHALLENGE,
        )


def _login(authorization: str) -> bytes:
    """``user:password``; empty, which is nobody's, where the header has none."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        return base64.b64decode(encoded.strip(), validate=True) if scheme.lower() == "basic" else b""
    except (binascii.Error, ValueError):
        return b""
