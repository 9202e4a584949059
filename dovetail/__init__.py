"""Joins of Kafka streams in SQL, from Python.

import dovetail

with dovetail.connect() as db:
    db.sql("CREATE STREAM orders (id int64, amount float64)")
    db.insert("orders", [{"id": 1, "amount": 2.5}])
    print(db.sql("SELECT sum(amount) AS total FROM table(orders)").pandas())
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.errors import DovetailError
from dovetail.change_feed import ChangeFeed, RowChange
from dovetail.connection import Connection, connect
from dovetail.query_result import QueryResult
from dovetail.stream_handle import StreamHandle

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["ChangeFeed", "Connection", "DovetailError", "QueryResult", "RowChange", "StreamHandle", "connect"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext dovetail``: the magics of notebooks."""
    from dovetail.notebook.magics import Magics  # noqa: PLC0415 - IPython is there only where a notebook is

    Magics(shell).register()
