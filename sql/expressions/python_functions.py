"""Functions that a user has written in Python, as calls of the engine's SQL.

The name of the call is the definition itself, written in letters and digits. So a definition travels wherever an
expression does, to whatever process or machine computes it, and nobody there needs a catalog; expressions are equal,
and checkpoints fit, where the definitions are the same.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import arrow, display

_PREFIX = "python_"
_CALL = re.compile(rf"\b{_PREFIX}([a-z2-7]+)(?=\()", re.IGNORECASE)


@dataclass(frozen=True)
class PythonFunction:
    """``name`` of columns of the types ``takes``, which gives a column of the type ``gives``.

    body      Python, which defines the function
    volatile  for equal arguments it may give another value each time
    """

    name: str
    takes: tuple[pa.DataType, ...]
    gives: pa.DataType
    body: str
    volatile: bool = False

    @cached_property
    def call(self) -> str:
        """Its name in the engine's SQL."""
        # Not packed: what a packer makes of a text is not the same everywhere.
        definition = [self.name, list(map(_written, self.takes)), _written(self.gives), self.body, self.volatile]
        spelled = base64.b32encode(json.dumps(definition, separators=(",", ":")).encode()).decode()
        return _PREFIX + spelled.rstrip("=").lower()

    def over(self, arguments: Sequence[exp.Expr]) -> exp.Expr:
        return exp.Anonymous(this=self.call, expressions=list(arguments))


def _written(kind: pa.DataType) -> str:
    return display(kind, Rules.TIMEPLUS)


@lru_cache(maxsize=1024)
def called_in(sql: str) -> tuple[PythonFunction, ...]:
    """The functions that the engine's SQL calls, each once."""
    found = (_read(call[1]) for call in _CALL.finditer(sql))
    return tuple(dict.fromkeys(function for function in found if function is not None))


def with_names(sql: str) -> str:
    """The engine's SQL as people read it: functions by the names that their users gave them."""
    return _CALL.sub(_name, sql)


def is_volatile(call: exp.Expr) -> bool:
    """Whether a node of the engine's tree calls a function whose value may be another each time."""
    found = _CALL.match(f"{call.this}(") if isinstance(call, exp.Anonymous) else None
    function = _read(found[1]) if found else None
    return function is not None and function.volatile


def _name(call: re.Match[str]) -> str:
    function = _read(call[1])
    return call[0] if function is None else function.name


@lru_cache(maxsize=1024)
def _read(spelled: str) -> PythonFunction | None:
    """None where a text only looks like a call."""
    padded = spelled.upper() + "=" * (-len(spelled) % 8)
    try:
        name, takes, gives, body, volatile = json.loads(base64.b32decode(padded))
        kinds = tuple(arrow(one, Rules.TIMEPLUS) for one in takes)
        return PythonFunction(name, kinds, arrow(gives, Rules.TIMEPLUS), body, volatile)
    except (binascii.Error, ValueError, TypeError, SqlError):
        return None
