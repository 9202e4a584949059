"""Joins of Kafka streams in SQL, from Python.

import dovetail

with dovetail.connect() as db:
    db.sql("CREATE STREAM orders (id int64, amount float64)")
    db.insert("orders", [{"id": 1, "amount": 2.5}])
    print(db.sql("SELECT sum(amount) AS total FROM table(orders)").pandas())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from dovetail.change_feed import ChangeFeed, RowChange
    from dovetail.changelog.errors import DovetailError
    from dovetail.connection import Connection, connect
    from dovetail.query_result import QueryResult
    from dovetail.services.session.context import agreed
    from dovetail.stream_handle import StreamHandle

__all__ = ["ChangeFeed", "Connection", "DovetailError", "QueryResult", "RowChange", "StreamHandle", "agreed", "connect"]
_MODULES = {
    "ChangeFeed": "dovetail.change_feed",
    "Connection": "dovetail.connection",
    "DovetailError": "dovetail.changelog.errors",
    "QueryResult": "dovetail.query_result",
    "RowChange": "dovetail.change_feed",
    "StreamHandle": "dovetail.stream_handle",
    "agreed": "dovetail.services.session.context",
    "connect": "dovetail.connection",
}


def __getattr__(name: str) -> object:
    """A name of ``__all__``, imported when it is first used.

    Every process imports this package, workers of Spark too, and the client is for few of them.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext dovetail``: the magics of notebooks."""
    from dovetail.notebook.magics import Magics  # noqa: PLC0415 - IPython is there only where a notebook is

    Magics(shell).register()
