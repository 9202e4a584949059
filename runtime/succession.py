"""How a view changes to another query without a moment at which it is neither.

The successor has read all that the view has, and both stand still. What the topic of the view holds and what that of
the successor holds differ by some changes, and these are written to the topic of the view in one transaction, which
also commits a **mark**. Then the catalog exchanges the two. So the mark decides, whoever dies when: without it the view
goes on as it was, with it the exchange is done, by whoever finds it undone.

Who changes a view holds a leadership, whose holder is the name of the successor: there is one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError
from dovetail.broker.names import MARKS_TOPIC
from dovetail.broker.producer_queue import Outgoing, OutgoingRecords
from dovetail.broker.transactional_writer import TransactionalWriter, WriteTarget, write_once
from dovetail.changelog.errors import ServiceUnavailable, SqlError, UnknownName
from dovetail.runtime.clock import now_ms
from dovetail.runtime.query_plan import view_to_succeed
from dovetail.sql.catalog import Catalog, Desired, Leadership, Query
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView

_MARKED = 0
"""The number of the one batch."""
_TRANSACTION_S = 600.0
_WAIT_S = 30.0
_HELD_MS = 1
"""Whether the leadership is held, and not until when: it ends with the lease of the successor."""


def begin(catalog: Catalog, view: str, successor: str) -> None:
    """From now on ``view`` may stand still for its successor. Raises SqlError while it does for another one."""
    wanted = Leadership(_leadership(view), successor, _HELD_MS)
    if catalog.take_leadership(wanted, now_ms=0).holder != successor:
        raise SqlError(
            f'another process is changing the query of "{view}"',
            where="ALTER VIEW",
            fix="wait until it is done, look at the view, and run the statement again",
        )


def is_under_way(catalog: Catalog, view: str) -> bool:
    """Whether ``view`` may stand still for its successor; it goes on by itself then, with one query or the other."""
    held = catalog.leadership(_leadership(view))
    return held is not None and bool(held.until_ms)


def write_difference(
    brokers: BrokerAddress, successor: str, outgoing: Sequence[Outgoing | OutgoingRecords], wait_s: float
) -> None:
    """Write the records and the mark, in one transaction. Raises ServiceUnavailable where the broker does not answer:
    whether it has taken them, ``settle`` knows; EnvironmentFault where that was before this.
    """
    write_once(_target(brokers, successor, "written", wait_s), 0, _MARKED, lambda: outgoing)


def settle(catalog: Catalog, brokers: BrokerAddress, successor: Query, wait_s: float = _WAIT_S) -> bool:
    """Whether the successor has taken the place of its view: bring that to an end where the difference is written, else
    let the view go on as it was. Nobody writes the difference from then on.
    """
    view = view_to_succeed(successor)
    held = catalog.leadership(_leadership(view))
    if held is None or held.holder != successor.name or not held.until_ms:
        return False
    marked = _is_written(brokers, successor.name, wait_s)
    if marked:
        statement = parse_one(successor.sql)
        assert isinstance(statement, CreateView)
        plan = plan_query(view, statement, catalog)
        catalog.succeed(successor, plan.stream(), plan.uses, now_ms=now_ms())
    else:
        with suppress(UnknownName):
            catalog.want(view, Desired.RUNNING, now_ms=now_ms())
    catalog.renew_leadership(held, 0)
    return marked


def _is_written(brokers: BrokerAddress, successor: str, wait_s: float) -> bool:
    """Whether the difference is; if not, it never will be."""
    try:
        writer = TransactionalWriter(_target(brokers, successor, "settled", wait_s), 0)
        if writer.last_committed_batch == _MARKED:
            return True
        writer.take_over()
    except BrokerError as failure:
        raise ServiceUnavailable(
            f"whether the view has changed is not known: {failure.reason}",
            where=f"brokers {brokers}",
            fix="it is looked at again by itself once the broker answers",
        ) from failure
    return False


def _leadership(view: str) -> str:
    return f"the query of {view}"


def _target(brokers: BrokerAddress, successor: str, epoch: str, wait_s: float) -> WriteTarget:
    return WriteTarget(
        brokers, f"dovetail.{successor}.difference", MARKS_TOPIC, _TRANSACTION_S, broker_wait_s=wait_s, epoch=epoch
    )
