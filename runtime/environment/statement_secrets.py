"""The variables whose values statements may name as passwords, ``PASSWORD ENV 'DOVETAIL_SECRET_SHOP'``."""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "DOVETAIL_SECRET_"


def secrets_of(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(PREFIX)}
