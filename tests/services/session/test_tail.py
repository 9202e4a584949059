"""Who follows what is dropped, made again or altered is told so, and does not wait forever."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
import pytest

from dovetail.changelog.errors import UnknownName
from dovetail.services.session import Session
from dovetail.services.session.tail.topic_views import TopicTail
from tests.services.worker.lanes import until

pytestmark = pytest.mark.services
WITHIN_S = 60.0


class Follower:
    def __init__(self, session: Session, name: str) -> None:
        self.rows: list[pa.Table] = []
        self._tail = TopicTail.of(session.context, name)
        self._pool = ThreadPoolExecutor(1)
        self._following: Future[None] = self._pool.submit(self._follow)
        self._began = False
        until(lambda: self._began)

    def _follow(self) -> None:
        for rows in self._tail.batches():
            self._began = True
            self.rows.append(rows)

    def ends(self) -> str:
        with pytest.raises(UnknownName) as ended:
            self._following.result(WITHIN_S)
        self._pool.shutdown()
        return str(ended.value)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["DROP STREAM followed WITH DATA"], '"followed" was dropped'),
        (
            ["DROP STREAM followed WITH DATA", "CREATE STREAM followed (k int64)"],
            '"followed" was dropped|the topic "followed"',
        ),
        (["ALTER STREAM followed ADD COLUMN v string"], '"followed" has other columns now'),
    ],
)
def test_it_ends_and_says_why(session: Session, statements: list[str], said: str) -> None:
    session.run("CREATE STREAM followed (k int64)")
    follower = Follower(session, "followed")
    session.run("INSERT INTO followed VALUES (1)")
    until(lambda: sum(rows.num_rows for rows in follower.rows) == 1)
    for statement in statements:
        session.run(statement)
    message = follower.ends()
    assert any(part in message for part in said.split("|"))


def test_a_topic_that_is_deleted_ends_it_too(session: Session) -> None:
    session.run("CREATE STREAM named (k int64)")
    session.run("DROP STREAM named")
    follower = Follower(session, "named")
    session.run("DROP TOPIC named WITH DATA")
    assert 'the topic "named" is gone' in follower.ends()
