"""A statement that is over asks the registry for nothing more: each record of a stranger may name another schema."""

from __future__ import annotations

from contextlib import closing

import pytest

from dovetail.broker.address import RegistryAddress
from dovetail.broker.registry.client import SchemaRegistryReader
from dovetail.changelog.errors import Interrupted, ServiceUnavailable
from dovetail.changelog.work.interruption import Interruption


def test_what_is_interrupted_asks_no_more() -> None:
    interruption = Interruption()
    with closing(SchemaRegistryReader(RegistryAddress("http://127.0.0.1:1"))) as reader, interruption.of_this_thread():
        with pytest.raises(ServiceUnavailable):
            reader.definition(7)
        interruption.ask()
        with pytest.raises(Interrupted):
            reader.definition(7)
