"""A hint is refused wherever it stands; a comment, and a text that looks like one, is none."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import Unsupported
from dovetail.sql.syntax.parse import parse

HINT = "/*+ BROADCAST(s) */"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {HINT} k FROM s",
        f"{HINT} SELECT k FROM s",
        f"SELECT k FROM s {HINT}",
        f"SELECT k FROM s {HINT} JOIN t USING (k)",
        f"SELECT 1; INSERT {HINT} INTO s VALUES (1)",
        f"CREATE MATERIALIZED VIEW v AS SELECT k FROM s {HINT}; SELECT 1",
        f"-- none\n/* none */ {HINT}\nSELECT 1",
    ],
)
def test_a_hint_is_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="a hint is not read") as fault:
        parse(text)
    assert fault.value.offset == text.index(HINT)
    parse(text.replace("/*+", "/* +"))


@pytest.mark.parametrize(
    "text", ["SELECT '/*+ x */' AS a", f"-- {HINT}\nSELECT 1", "SELECT 1 /* + x */", "SELECT 1 /* a /*+ b */ */"]
)
def test_what_is_no_hint_is_read(text: str) -> None:
    assert len(parse(text)) == 1
