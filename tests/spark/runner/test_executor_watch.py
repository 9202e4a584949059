"""What is said of a cluster that gives no executors, and when."""

from __future__ import annotations

from dovetail.spark_jobs.runner.executor_watch import ExecutorWatch, master_answers

MASTER = "spark://one:7077"


class Cluster:
    """A cluster by itself, and the time."""

    def __init__(self, *, there: bool | None = True, executors: int = 0) -> None:
        self.there, self.executors, self.now_s = there, executors, 0.0
        self.watch = ExecutorWatch(MASTER, "512m", lambda: self.executors, lambda: self.there, lambda: self.now_s)

    def after(self, seconds: int) -> str:
        """What is said after so many looks, one a second."""
        for _ in range(seconds):
            self.now_s += 1
            self.watch.look()
        return self.watch.trouble


def test_an_executor_may_take_a_while_to_start() -> None:
    cluster = Cluster()
    assert cluster.after(9) == ""
    cluster.executors = 1
    assert cluster.after(100) == ""
    assert cluster.watch.present


def test_where_there_is_none_it_says_what_a_worker_needs() -> None:
    cluster = Cluster()
    message = cluster.after(10)
    assert "has no executor for this session" in message
    assert MASTER in message
    assert "512m of memory" in message
    cluster.executors = 1
    assert cluster.after(1) == ""


def test_a_master_that_is_away_is_named_once_its_executors_are_gone() -> None:
    """They go on working without it."""
    cluster = Cluster(executors=2)
    cluster.after(5)
    cluster.there = False
    assert cluster.after(100) == ""
    cluster.executors = 0
    assert "no master of Spark answers" in cluster.after(10)


def test_a_session_without_executors_is_forgotten_by_a_master_that_comes_back() -> None:
    cluster = Cluster(executors=2)
    cluster.after(5)
    cluster.there = False
    cluster.after(3)
    cluster.there = True
    cluster.after(100)
    assert not cluster.watch.is_forgotten
    cluster.executors = 0
    cluster.after(20)
    assert not cluster.watch.is_forgotten
    cluster.after(1)
    assert cluster.watch.is_forgotten


def test_a_cluster_that_was_there_all_the_time_has_forgotten_nobody() -> None:
    for there in (True, None):
        cluster = Cluster(there=there)
        cluster.after(1000)
        assert not cluster.watch.is_forgotten


def test_only_a_standalone_master_is_asked() -> None:
    assert [master_answers(master) for master in ("local[2]", "yarn", "k8s://https://one:6443")] == [None] * 3
    assert master_answers("spark://127.0.0.1:1,127.0.0.1:2") is False
    assert master_answers("spark://nowhere") is False
