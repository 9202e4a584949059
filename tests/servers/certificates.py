"""Certificates for servers of tests, as PEM files: those to trust, and one of each kind not to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

CLIENT = "alice"
HOST = "127.0.0.1"


def write_certificates(folder: Path) -> None:
    """``<name>.pem`` and ``<name>.key``.

    ca, unknown  an authority, and one that has issued nothing
    server       for 127.0.0.1; expired: until yesterday; foreign: for another host
    client       of who asks
    """
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "unknown.pem")
    yesterday = datetime.now(UTC) - timedelta(days=1)
    issued = {
        "server": authority.issue_cert(HOST),
        "expired": authority.issue_cert(HOST, not_after=yesterday),
        "foreign": authority.issue_cert("server.example"),
        "client": authority.issue_cert(CLIENT),
    }
    for name, pair in issued.items():
        (folder / f"{name}.pem").write_bytes(b"".join(part.bytes() for part in pair.cert_chain_pems))
        private = load_pem_private_key(pair.private_key_pem.bytes(), None)
        # Java reads this form of a key, and no other.
        (folder / f"{name}.key").write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
