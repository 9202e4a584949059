"""What is said of an address at which there is nothing."""

from __future__ import annotations

import re

import pytest

from dovetail.services.serve.nearest_address import PANELS, nearest_address
from dovetail.services.serve.routes import ROUTES
from dovetail.services.serve.routes.page import FOLDER


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/views", "/v1/views"),
        ("/v1/view/orders/changes", "/v1/views/orders/changes"),
        ("/v1/views/orders/change", "/v1/views/orders/changes"),
        ("/v1/queries/", "/v1/queries"),
        ("/health/", "/health"),
    ],
)
def test_the_nearest_is_one_that_is_there(path: str, near: str) -> None:
    assert nearest_address(path).startswith(f"did you mean {near}? ")
    patterns = [re.sub(r"\{\w+\}", "[^/]+", endpoint.path) for endpoint in ROUTES]
    assert any(re.fullmatch(pattern, near) for pattern in patterns)


@pytest.mark.parametrize("path", ["/page/", "/page", "/page/views", "/page/views/"])
def test_of_the_page_the_panels_are_named(path: str) -> None:
    """``/page/#/views`` is asked for as ``/page/``."""
    assert nearest_address(path).startswith("GET / is the page, and its panels are at /#/views, /#/graph")


def test_a_panel_is_found_where_it_is() -> None:
    assert "/#/graph is a panel of the page" in nearest_address("/graph")
    assert nearest_address("/zzzzzzz") == "GET / is the page; GET /openapi.json has all paths"


def test_the_panels_are_those_of_the_page() -> None:
    listed = re.search(r"const PANELS = \{(.*?)\n\};", (FOLDER / "modules" / "main.js").read_text(), re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r"^  (\w+): \{", listed[1], re.MULTILINE)) == PANELS
