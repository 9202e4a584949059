"""The session of a notebook: opened when it is first needed, and opened anew when its stack has been started again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from IPython.core.error import StdinNotImplementedError

from dovetail.changelog.errors import StackError
from dovetail.runtime.environment.unknown_variables import warn_of_unknown
from dovetail.runtime.settings import Settings
from dovetail.services.known_stacks import found_settings
from dovetail.services.session import Session
from dovetail.services.session.context import unasked
from dovetail.services.stack import Stack
from dovetail.services.stack.state import Phase

_LOOKED_AFTER_EVERY_S = 2.0


def confirmed(what: str) -> bool:
    """Whether the person at the notebook agrees. Raises Unsupported where no one can be asked, as in one that is run
    as a whole.
    """
    try:
        return input(f"{what}. Continue? [y/N] ").strip().lower() in {"y", "yes"}
    except (StdinNotImplementedError, EOFError, OSError):
        return unasked(what)


class Workplace:
    """The settings are those of the process, of which ``given`` stand before; as for ``dovetail.connect``."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._given: Mapping[str, object] = {}
        self._settings: Settings | None = None
        self._session: Session | None = None

    def connect(self, given: Mapping[str, object]) -> Session:
        """A new session; what was connected before is closed only when the new one is there."""
        settings = found_settings(given)
        warn_of_unknown(self._say)
        session = Session.open(settings, say=self._say, confirm=confirmed)
        self.close()
        self._given, self._settings, self._session = given, settings, session
        return session

    def session(self) -> Session:
        """Raises StackError where the local stack that it works with has ended."""
        if self._session is None:
            return self.connect(self._given)
        if (now := self._endpoint()) is not None and now != self._session.context.brokers.servers:
            return self.connect(self._given)
        return self._session

    def looked_after(self, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The same, until the stack behind them ends: nothing would come any more, without a word."""
        looked_s = time.monotonic()
        for batch in batches:
            if batch.num_rows == 0 and time.monotonic() - looked_s > _LOOKED_AFTER_EVERY_S:
                self._endpoint()
                looked_s = time.monotonic()
            yield batch

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _endpoint(self) -> str | None:
        """Where the broker of the local stack is; None where the brokers are somebody else's."""
        settings = self._settings
        if settings is None or settings.brokers is not None:
            return None
        [kafka] = [line for line in Stack(settings).status() if line.name == "kafka"]
        match kafka.phase:
            case Phase.READY:
                return kafka.endpoint
            case Phase.STARTING | Phase.RESTARTING | Phase.WAITING:
                state, fix = "is being started again", "wait a moment, then run the cell again"
            case _:
                state, fix = "has ended", f"dovetail up, in {settings.data_dir.parent}; then run the cell again"
        raise StackError(f"the stack that this notebook works with {state}", where=str(settings.data_dir), fix=fix)
