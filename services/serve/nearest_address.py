"""The address that works, nearest to one that does not."""

from __future__ import annotations

import re
from difflib import get_close_matches

from dovetail.services.serve.routes import ROUTES

PANELS = ("views", "graph", "changes", "sql", "dictionaries", "letters", "why")
"""What the page shows, each at ``/#/<panel>``: a browser keeps all behind the ``#`` to itself."""
_ALL = "GET / is the page; GET /openapi.json has all paths"


def nearest_address(path: str) -> str:
    """What to ask for instead of ``path``, at which there is nothing."""
    words = [word for word in path.split("/") if word not in ("", "#")]
    panel = next((word for word in words if word in PANELS), "")
    if words[:1] == ["page"]:
        return f"GET / is the page, and its panels are at {', '.join(f'/#/{one}' for one in PANELS)}"
    near = get_close_matches(path, [_filled(one.path, words) for one in ROUTES if one.path != "/"], n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return hint + (f"/#/{panel} is a panel of the page; " if panel and words[0] != "v1" else "") + _ALL


def _filled(template: str, words: list[str]) -> str:
    """``template`` with the words of an address of the same length in the places of its parameters."""
    parts = template.strip("/").split("/")
    if len(parts) != len(words):
        return template
    return "/" + "/".join(
        word if re.fullmatch(r"\{\w+\}", part) else part for part, word in zip(parts, words, strict=True)
    )
