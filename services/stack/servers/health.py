"""Whether a server says over HTTP that it is well."""

from __future__ import annotations

import ssl
import urllib.request

_ANSWER_TIMEOUT_S = 1.0
UNVERIFIED = ssl.create_default_context()
"""Whether a server lives is asked, not who it is: its certificate is for the names by which others call it."""
UNVERIFIED.check_hostname = False
UNVERIFIED.verify_mode = ssl.CERT_NONE


def is_well(url: str, trusting: ssl.SSLContext | None = None) -> bool:
    """Whether it answers 200 within a second."""
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_TIMEOUT_S, context=trusting) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
