"""The sign of life of a process, as its worker hears it."""

from __future__ import annotations

import os

from dovetail.services.worker.query.pulse import PulseListener
from tests.services.worker.lanes import until


def test_one_that_has_not_begun_yet_is_not_silent() -> None:
    read, write = os.pipe()
    listener = PulseListener(read)
    assert listener.silent_s() == 0.0
    assert listener.silent_s() == 0.0
    os.write(write, b"...")
    assert listener.silent_s() == 0.0
    until(lambda: listener.silent_s() > 0.1)
    os.write(write, b".")
    assert listener.silent_s() == 0.0
    os.close(write)
    until(lambda: listener.silent_s() > 0.1)
    listener.close()
