"""The fingerprint of a plan: a hash over its canonical form, and the version of that form."""

from __future__ import annotations

import hashlib
import json

from dovetail.sql.plan.nodes import Output

FORM_VERSION = 1
"""Of the canonical form. It rises with a change that gives plans another form, although their state is the same:
fingerprints of two versions cannot be compared."""


def fingerprint(plan: Output) -> str:
    """``1:<sha256>``; equal for plans whose state and output are."""
    text = json.dumps(plan.canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{FORM_VERSION}:{hashlib.sha256(text.encode()).hexdigest()}"


def readable_form(plan: Output) -> str:
    """What the hash is made over, for people."""
    return json.dumps(plan.canonical, indent=1, ensure_ascii=False)
