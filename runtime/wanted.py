"""The wait between two looks at the catalog, which ends early where somebody wants something else of a query."""

from __future__ import annotations

import threading
import time

from dovetail.sql.catalog import Catalog

_POLL_S = 0.025


class WantedWatch:
    """Whoever looks after the queries of ``catalog`` waits here."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._seen = catalog.wishes()

    def wait(self, stopped: threading.Event, longest_s: float) -> bool:
        """Until ``stopped``, which is what is answered; until a query is created, dropped, paused or resumed; or for
        ``longest_s``, which is how long a wish waits in a catalog that cannot be asked for less than a look.
        """
        deadline_s = time.monotonic() + longest_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            if stopped.wait(left_s if self._seen is None else min(left_s, _POLL_S)):
                return True
            wishes = self._catalog.wishes()
            if wishes != self._seen:
                self._seen = wishes
                return False
        return stopped.is_set()
