"""WAIT FOR."""

from __future__ import annotations

from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.statements import InputOffset, WaitFor


def wait_for(cursor: Cursor) -> WaitFor:
    """``WAIT FOR v [TO INCLUDE orders[0]@123, orders[1]@7] [TIMEOUT 30]``."""
    cursor.clause = "WAIT"
    cursor.expect("WAIT")
    cursor.expect("FOR")
    view = cursor.path("the name of a view")
    offsets: tuple[InputOffset, ...] = ()
    if not cursor.done and not cursor.at("TIMEOUT"):
        cursor.expect("TO INCLUDE", "TIMEOUT")
        offsets = cursor.listed(lambda: _input_offset(cursor))
    if cursor.done:
        return WaitFor(view, offsets)
    cursor.expect("TIMEOUT")
    return WaitFor(view, offsets, cursor.integer("a whole number of seconds"))


def _input_offset(cursor: Cursor) -> InputOffset:
    name = cursor.path("a stream or a view")
    form = f"one record of {name} is written {name}[partition]@offset, as {name}[0]@123"
    cursor.expect("[", fix=form)
    partition = cursor.integer("the number of a partition")
    cursor.expect("]", fix=form)
    cursor.expect("@", fix=form)
    return InputOffset(name, partition, cursor.integer("an offset"))
