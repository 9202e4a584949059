"""Errors of the registry: Confluent's numbers, of which the first three digits are the status of the answer."""

from __future__ import annotations

from enum import IntEnum


class RefusalCode(IntEnum):
    """What clients tell errors apart by."""

    SUBJECT_UNKNOWN = 40401
    VERSION_UNKNOWN = 40402
    SCHEMA_UNKNOWN = 40403
    SUBJECT_DELETED = 40404
    SUBJECT_NOT_DELETED = 40405
    VERSION_NOT_DELETED = 40407
    NO_LEVEL_OF_SUBJECT = 40408
    INCOMPATIBLE = 409
    INVALID_SCHEMA = 42201
    INVALID_VERSION = 42202
    INVALID_LEVEL = 42203
    REFERENCED = 42206
    INVALID_REQUEST = 422


class RegistryRefused(Exception):
    """A request that is not carried out; ``message`` says what and how to mend it."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """Of HTTP."""
        return int(str(int(self.code))[:3])
