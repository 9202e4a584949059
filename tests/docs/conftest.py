"""A stack with everything, for the pages and examples that a reader follows on one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.services.session import Session
from dovetail.services.stack import Stack, temporary_stack
from dovetail.services.stack.components import COMPONENT_NAMES
from tests.servers.process import PASSWORD
from tests.services.conftest import leave_nothing


@pytest.fixture(scope="package")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All components, one for all files of this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_SECRET_PRODUCTS", PASSWORD)
        folder = tmp_path_factory.mktemp("pages")
        with temporary_stack(folder, COMPONENT_NAMES, buckets=1, start_timeout_s=240.0, stop_timeout_s=60.0) as running:
            yield running


@pytest.fixture
def whole_stack(shared_stack: Stack) -> Iterator[Stack]:
    """Empty before, and empty after: pages and examples share names."""
    yield shared_stack
    with Session.open(shared_stack.connected_settings()) as session:
        leave_nothing(session)
