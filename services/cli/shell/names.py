"""Names for the shell to complete: of what the catalog has.

A key has been pressed, and somebody waits: a catalog in a file is read as it is, in some milliseconds. One that is not
there is not made, one in a database is not asked, and whatever fails completes to nothing.
"""

# ruff: noqa: PLC0415 - nothing is imported before a name is to be completed

from __future__ import annotations

_COMPONENTS = ("kafka", "redis", "spark", "worker", "serve", "supervisor", "view")


def views(incomplete: str) -> list[str]:
    return _names("what = 'view'", incomplete)


def topics(incomplete: str) -> list[str]:
    """Streams and views."""
    return _names("what IN ('stream', 'view')", incomplete)


def dictionaries(incomplete: str) -> list[str]:
    return _names("what = 'dictionary'", incomplete)


def dead_letter_topics(incomplete: str) -> list[str]:
    """Topics of dead letters, of which each view may have one."""
    return [f"{name}.dead_letter" for name in _names("what = 'view'", incomplete.split(".", maxsplit=1)[0])]


def components(incomplete: str) -> list[str]:
    return [name for name in _COMPONENTS if name.startswith(incomplete)]


def _names(condition: str, incomplete: str) -> list[str]:
    import sqlite3
    from pathlib import Path
    from urllib.parse import quote

    from dovetail.changelog.errors import StackError
    from dovetail.runtime.settings import read_settings

    try:
        url = read_settings().catalog_address
    except StackError:
        return []
    path = Path(url.removeprefix("sqlite:///"))
    if not url.startswith("sqlite:///") or not path.is_file():
        return []
    try:
        read = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=0.2)
    except sqlite3.Error:
        return []
    try:
        found = read.execute(f"SELECT name FROM relations WHERE {condition} ORDER BY name").fetchall()
    except sqlite3.Error:
        return []
    finally:
        read.close()
    return [name for (name,) in found if name.startswith(incomplete)]
