"""What the routes work with."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.runtime.settings import Settings
from dovetail.services.serve.access.authenticator import Authenticator
from dovetail.services.serve.access.users import UserFile
from dovetail.services.serve.figures import Figures
from dovetail.services.serve.readiness import Readiness
from dovetail.services.serve.statements.bounds import Allowance
from dovetail.services.serve.statements.statement_pool import OpenSession, StatementPool
from dovetail.services.serve.tails.fan_out import FanOut
from dovetail.services.serve.watch.watcher import Watcher
from dovetail.services.session.context import silent, unasked


@dataclass(frozen=True)
class Service:
    """``listings`` has places of its own: they tell what there is while statements take all others."""

    settings: Settings
    users: UserFile
    authenticator: Authenticator
    desk: StatementPool
    listings: StatementPool
    readiness: Readiness
    fan_out: FanOut
    figures: Figures
    watcher: Watcher

    @staticmethod
    def of(settings: Settings, open_session: OpenSession) -> Service:
        users = UserFile.of(settings)
        desk = StatementPool(settings, open_session)
        listings = StatementPool(settings, open_session)
        readiness = Readiness(lambda: open_session(silent, unasked))
        fan_out = FanOut(settings, lambda: open_session(silent, unasked))
        figures = Figures(desk, fan_out)
        watcher = Watcher(lambda: open_session(silent, unasked), settings.serve_watch_s)
        return Service(settings, users, Authenticator(users), desk, listings, readiness, fan_out, figures, watcher)

    def allowance(self) -> Allowance:
        return Allowance(self.settings.serve_rows, self.settings.serve_answer_bytes)

    def close(self) -> None:
        self.desk.close()
        self.listings.close()
        self.readiness.close()
        self.fan_out.close()
        self.watcher.close()
