"""Encryption to a source: SECURE, SSL_CA, SSL_CERT and SSL_KEY, the same for every database."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dovetail.changelog.errors import SourceRefused, SqlError
from dovetail.dictionaries.definition.options import Option, Parameters
from dovetail.dictionaries.outside.outside import Outside

FILES = ("ssl_ca", "ssl_cert", "ssl_key")
OPTIONS = (Option("secure", bool, False), *(Option(name) for name in FILES))
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_REFUSED = re.compile(
    r"certificate verify failed(?:: (?P<why>[^(\n]+))?|(?P<host>server certificate for .{0,100}?host name.*)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SourceTls:
    """Paths of PEM files. ``ca``: the authorities that are trusted; ``certificate`` with its ``key``: '' for none."""

    ca: str
    certificate: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext:
        return client_context(self.ca, self.certificate, self.key)


def client_context(ca: str = "", certificate: str = "", key: str = "", password: str = "") -> ssl.SSLContext:
    """Out of PEM files; '' stands for the authorities of the system, and for no certificate. Raises OSError, of which
    SSLError is one, and ValueError for files that cannot be used.
    """
    context = ssl.create_default_context(cafile=ca or None)
    if certificate:
        # OpenSSL would ask the terminal for a password that is not given.
        context.load_cert_chain(certificate, key, lambda: password)
    return context


def tls_of(parameters: Parameters, where: str, outside: Outside) -> SourceTls | None:
    """None: in plain text. Raises SourceRefused for a file that cannot be read: others may have it."""
    if not parameters.get("secure"):
        return None
    given = (str(parameters.get(name, "")) for name in FILES)
    ca, certificate, key = (path and str(outside.files.secret_place(path, where)) for path in given)
    found = SourceTls(ca or _of_the_system(), certificate, key)
    try:
        found.context()
    except (OSError, ValueError):
        named = ", ".join(f"{name.upper()} {parameters[name]}" for name in FILES if name in parameters)
        raise SourceRefused(
            f"the certificates cannot be read: {named or found.ca}",
            where=where,
            fix="PEM files, on the machines of the workers and of the session, readable for their user; a key without"
            " a password",
        ) from None
    return found


def check_tls(parameters: Parameters, where: str) -> None:
    """Raises SqlError for options that make no whole; no file is looked at."""
    given = [name for name in FILES if name in parameters]
    if given and not parameters.get("secure"):
        raise SqlError(f"{given[0].upper()} is for TLS", where=where, fix="SECURE true")
    if ("ssl_cert" in given) != ("ssl_key" in given):
        raise SqlError("a certificate and its key belong together", where=where, fix="SSL_CERT 'path' SSL_KEY 'path'")


def certificate_refused(error: BaseException | None) -> tuple[str, str] | None:
    """What is wrong with the certificate of a server, and the fix; None where an error is about something else."""
    for cause in causes(error):
        if found := _REFUSED.search(str(cause)):
            why = (found["why"] or found["host"] or "").strip() or "it cannot be verified"
            return (
                f"the certificate of the server is refused: {why}",
                "it must be valid, for the HOST of the source, and of an authority in SSL_CA; docs/security.md",
            )
    return None


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it came of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _of_the_system() -> str:
    """A file, since drivers come with authorities, and ideas of their own of where to look."""
    paths = [ssl.get_default_verify_paths().cafile, *_BUNDLES]
    return next((path for path in paths if path is not None and Path(path).is_file()), _BUNDLES[0])
