"""The colours of the page: each text on each ground it may stand on, in the light and in the dark."""

from __future__ import annotations

import re

import pytest

from dovetail.services.serve.routes.page import FOLDER

_LEAST = 4.5
"""The contrast of WCAG 2.2, level AA, of text."""
_LIGHT, _DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part))
    for part in (FOLDER / "styles" / "colours.css").read_text().split("@media")
)
_GROUNDS = ("ground", "raised", "accent-ground", "good-ground", "bad-ground", "wait-ground")
_PAIRS = [
    *((text, ground) for text in ("text", "faint") for ground in _GROUNDS),
    *(
        (text, ground)
        for text in ("accent", "good", "bad", "wait")
        for ground in ("ground", "raised", f"{text}-ground")
    ),
    *(("accent", ground) for ground in ("good-ground", "bad-ground")),
    *((text, "raised") for text in ("series-1", "series-2")),
    ("ground", "accent"),
]


def luminance(colour: str) -> float:
    """As WCAG has it, of ``#rrggbb``."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", [_LIGHT, {**_LIGHT, **_DARK}], ids=["light", "dark"])
def test_every_text_can_be_read_on_its_ground(colours: dict[str, str]) -> None:
    faint = {}
    for text, ground in _PAIRS:
        low, high = sorted((luminance(colours[text]), luminance(colours[ground])))
        contrast = (high + 0.05) / (low + 0.05)
        if contrast < _LEAST:
            faint[text, ground] = round(contrast, 2)
    assert faint == {}


def test_the_dark_has_every_colour_and_no_other_file_has_any() -> None:
    assert _DARK.keys() == _LIGHT.keys()
    for path in (FOLDER / "styles").glob("*.css"):
        if path.name != "colours.css":
            assert not re.search(r"#[0-9a-f]{3,8}\b(?![^{]*\{)", path.read_text()), path.name
