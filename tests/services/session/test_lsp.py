"""``dovetail lsp`` beside a real stack: a file sees its streams and views, and is no order to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.services.session import Session
from dovetail.services.stack import Stack
from tests.services.lsp.editor import editor

pytestmark = pytest.mark.services


def test_a_file_sees_what_the_stack_has(running: Stack, session_of_runners: Session, tmp_path: Path) -> None:
    session = session_of_runners
    session.run("CREATE TABLE users (id int PRIMARY KEY, name varchar)")
    session.run("CREATE MATERIALIZED VIEW named AS SELECT id, upper(name) AS name FROM users")
    with editor(tmp_path, environment={"DOVETAIL_DATA_DIR": str(running.settings.data_dir)}) as opened:
        assert opened.open("SELECT id, name FROM named; DROP VIEW named; CREATE STREAM users (other int);") == []
        (misspelt,) = opened.change("SELECT nam FROM named")
        assert misspelt["message"].startswith('there is no column "nam"')
        (unknown,) = opened.change("SELECT id FROM nowhere")
        assert unknown["severity"] == 1
        opened.change("SELECT na FROM named")
        assert opened.offered(0, 9)[:2] == ["named", "name"]
        assert "materialized view named\nid integer\nname varchar" in opened.hover(0, 18)
    assert {relation.name for relation in session.context.catalog.relations()} == {"users", "named"}
