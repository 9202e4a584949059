"""Rules and dashboards are well formed, every alert fires on what it is for, and a page says what to do about it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import Page
from tests.monitoring.dashboards import DASHBOARDS, SOURCE, expressions
from tests.paths import ROOT
from tests.servers.prometheus import MONITORING, promtool

HERE = Path(__file__).parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
RULES: list[dict[str, Any]] = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
ALERTS = [rule["alert"] for rule in RULES]


@pytest.mark.services
def test_every_alert_fires_on_what_it_is_for() -> None:
    promtool("check", "config", "prometheus.yml", folder=MONITORING)
    promtool("test", "rules", "alerts_test.yml", folder=HERE)
    tests = yaml.safe_load((HERE / "alerts_test.yml").read_text())["tests"]
    fired = {one["alertname"] for part in tests for one in part["alert_rule_test"] if one["exp_alerts"]}
    assert fired == set(ALERTS)


def test_a_page_says_what_to_do_about_every_alert() -> None:
    rows = Page.of("docs/monitoring.md").rows("alert", "what it says", "what to do")
    assert [row[0].strip("`") for row in rows] == ALERTS


def test_every_alert_leads_to_that_page() -> None:
    for rule in RULES:
        path, _, anchor = rule["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(), re.MULTILINE)
        assert anchor in {heading.lower().replace(" ", "-") for heading in headings}
        assert f"`{rule['alert']}`" in (ROOT / path).read_text()


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_a_dashboard_can_be_drawn(file: Path) -> None:
    board = json.loads(file.read_text())
    assert board["uid"] == f"dovetail-{file.stem}"
    panels = board["panels"]
    assert [name for name, count in Counter(panel["id"] for panel in panels).items() if count > 1] == []
    squares = Counter(
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    )
    assert max(squares.values()) == 1
    assert max(x for x, _ in squares) < 24
    for panel in panels:
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert {str(target["datasource"]["uid"]) for target in panel["targets"]} == {SOURCE}


def test_the_containers_have_the_files_and_the_addresses() -> None:
    services = COMPOSE["services"]
    scraped = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    targets = [target for job in scraped for part in job["static_configs"] for target in part["targets"]]
    assert {target.split(":")[0] for target in targets} <= services.keys()
    [source] = yaml.safe_load((MONITORING / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert source["uid"] == SOURCE
    assert source["url"].removeprefix("http://").split(":")[0] in services
    [provider] = yaml.safe_load((MONITORING / "provisioning/dashboards/dovetail.yml").read_text())["providers"]
    mounted = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"] if volume.startswith("./"))
    assert {ROOT / path for path in mounted} == {MONITORING / "provisioning", MONITORING / "dashboards"}
    assert provider["options"]["path"] in mounted.values()


def test_what_the_dashboards_ask_is_read_from_all_of_them() -> None:
    assert {file.stem for file, _ in expressions()} == {file.stem for file in DASHBOARDS}
