"""Rows as a notebook shows them: as HTML, and as text for what shows no HTML."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape

import pyarrow as pa

from dovetail.changelog.schema import WIRE_DELTA
from dovetail.changelog.wording import counted
from dovetail.services.cli.cells import NULL, texts, to_the_right
from dovetail.services.cli.show import Screen, cut

_COLOURS = {"1": "color:#1a7f37", "-1": "color:#cf222e"}
Bundle = dict[str, str]
"""The same by MIME type: a notebook shows the best that it can."""


def lines_of(text: str) -> Bundle:
    return {"text/plain": text, "text/html": f"<pre>{escape(text)}</pre>"}


def table_of(rows: pa.Table, note: str) -> Bundle:
    """All of ``rows``, with ``note`` below; rows that are taken back are red."""
    return {"text/plain": f"{_plain(rows)}{note}", "text/html": f"{_html(rows)}<p>{escape(note)}</p>"}


def answer_of(rows: pa.Table, most: int, note: str = "", wide: Sequence[str] = ()) -> Bundle:
    """The first ``most`` rows, with how many there are; texts of ``wide`` columns are cut to a line."""
    count = counted(rows.num_rows, "row") + (f", the first {most:,} are shown" if rows.num_rows > most else "")
    return table_of(cut(rows.slice(0, most), wide), ", ".join(filter(None, [count, note])))


def _plain(rows: pa.Table) -> str:
    output = io.StringIO()
    Screen(output=output).plain(rows)
    return output.getvalue()


def _html(rows: pa.Table) -> str:
    sides = ["right" if to_the_right(field.type) else "left" for field in rows.schema]
    delta = rows.schema.get_field_index(WIRE_DELTA)
    header = "".join(
        f'<th style="text-align:{side}">{escape(name)}</th>'
        for name, side in zip(rows.column_names, sides, strict=True)
    )
    body = "".join(_line(values, sides, values[delta] if delta >= 0 else "") for values in texts(rows))
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _line(values: Sequence[str], sides: Sequence[str], delta: str) -> str:
    cells = "".join(
        f'<td style="text-align:{side};white-space:pre-wrap{";opacity:0.5" if value == NULL else ""}">'
        f"{escape(value)}</td>"
        for value, side in zip(values, sides, strict=True)
    )
    return f'<tr style="{_COLOURS.get(delta, "")}">{cells}</tr>'
