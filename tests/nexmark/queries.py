"""The queries of examples/nexmark, by name."""

from __future__ import annotations

from tests.paths import ROOT

FOLDER = ROOT / "examples" / "nexmark"
TABLES = (FOLDER / "tables.sql").read_text()
QUERIES = {
    path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"), key=lambda path: int(path.stem.lstrip("q")))
}
TIMEPLUS_TABLES = (FOLDER / "timeplus" / "tables.sql").read_text()
TIMEPLUS = QUERIES | {path.stem: path.read_text() for path in sorted((FOLDER / "timeplus").glob("q*.sql"))}
"""Many read the same in both dialects."""
ANSWERED_ONCE = frozenset({"q7", "q101", "q103", "q104"})
"""Over streams: a row is joined with what there is when it comes, so no batch gives the same."""
WINDOWED = ("q5", "q7", "q8")
"""They have a second form, in which each row leaves once, when its window is closed."""


def once(name: str) -> str:
    return f"{QUERIES[name]} EMIT ON WINDOW CLOSE"
