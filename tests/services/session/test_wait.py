"""WAIT FOR: what is waited for, of queries whose progress is reported by hand and topics whose ends are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import Interrupted, SqlError, UnknownName
from dovetail.changelog.work.interruption import Interruption
from dovetail.runtime import succession
from dovetail.services.session.input_progress import InputProgress
from dovetail.services.session.wait import wait_for as waiting
from dovetail.services.session.wait.inclusion import Inclusion
from dovetail.services.session.wait.input_chain import InputChain
from dovetail.services.session.wait.wait_for import NotIncluded, await_included, wait_for
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Actual, Catalog, Desired
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import WaitFor
from tests.services.given_ends import AtHand, Ends, create, report

ON, DIRECT = "ON orders.item = prices.item", "join_algorithm = 'direct'"
WORLD = (
    "CREATE STREAM orders (id int64, item string)",
    "CREATE MUTABLE STREAM prices (item string, price float64) PRIMARY KEY item",
    "CREATE STREAM notes (id int64)",
    "CREATE STREAM all_orders (id int64, item string)",
    "CREATE VIEW some AS SELECT id, item FROM orders WHERE id > 0",
    "CREATE MATERIALIZED VIEW priced AS SELECT id, price FROM some JOIN prices ON some.item = prices.item",
    "CREATE MATERIALIZED VIEW totals AS SELECT t.id, n.id AS note FROM priced AS t JOIN notes AS n ON t.id = n.id",
    "CREATE MATERIALIZED VIEW gathered INTO all_orders AS SELECT id, item FROM orders",
    "CREATE MATERIALIZED VIEW after_all AS SELECT id FROM all_orders",
    f"CREATE MATERIALIZED VIEW looked AS SELECT id, price FROM orders JOIN prices {ON} SETTINGS {DIRECT}",
)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[AtHand]:
    catalog = Catalog.open("sqlite://")
    for text in WORLD:
        create(catalog, text)
    yield AtHand(temporary_settings(tmp_path), catalog, BrokerAddress("127.0.0.1:1"))
    catalog.close()


def parsed(text: str) -> WaitFor:
    statement = parse_one(text)
    assert isinstance(statement, WaitFor)
    return statement


def wait(context: AtHand, text: str) -> str:
    """Without a wait where it is not so yet."""
    return wait_for(context, parsed(f"WAIT FOR {text} TIMEOUT 0")).text


def inclusion(context: AtHand, view: str, ends: Ends) -> Inclusion:
    chain = InputChain.of(context.catalog, view)
    return Inclusion(chain, ends, context.topics, lambda one: InputProgress.of(context.catalog.query(one.name)))


def test_a_record_is_included_once_it_was_read_and_what_came_of_it_is_committed(context: AtHand) -> None:
    context.topics.given["orders"] = {0: 124, 1: 9}
    context.topics.given["priced"] = {0: 57}
    report(context.catalog, "priced", {"orders": {0: 123, 1: 9}})
    with pytest.raises(NotIncluded, match=r"^priced does not include orders\[0\]@123 within 0 s") as late:
        wait(context, "priced TO INCLUDE orders[0]@123")
    assert late.value.where.startswith("priced has read orders[0] to 123 of 124; priced is ")
    assert wait(context, "priced TO INCLUDE orders[0]@122, orders[1]@8") == (
        "priced includes orders[0]@122, orders[1]@8"
    )
    report(context.catalog, "priced", {"orders": {0: 124}})
    context.topics.hidden["priced"] = 1
    with pytest.raises(NotIncluded) as late:
        wait(context, "priced TO INCLUDE orders[0]@123")
    assert late.value.where.startswith("priced has read it, and a transaction of priced is open; ")
    context.topics.hidden.clear()
    included = await_included(context, parsed("WAIT FOR priced TO INCLUDE orders[0]@123 TIMEOUT 0"))
    assert (included.topic, included.ends) == ("priced", {0: 57})


def test_what_is_written_meanwhile_is_not_waited_for(context: AtHand) -> None:
    context.topics.given["priced"] = {0: 57}
    found = inclusion(context, "priced", {"orders": {0: 124}})
    report(context.catalog, "priced", {"orders": {0: 124}})
    context.topics.hidden["priced"] = 1
    assert not found.is_complete()
    context.topics.given["priced"] = {0: 99}
    context.topics.hidden["priced"] = 40
    assert found.is_complete()
    assert found.ends == {0: 57}


def test_a_wait_follows_the_views_between(context: AtHand) -> None:
    """The view in the midst is not asked for more than the record; the next one for all that its topic held then."""
    context.topics.given |= {"priced": {0: 57, 1: 3}, "totals": {0: 9}}
    found = inclusion(context, "totals", {"orders": {0: 124}})
    report(context.catalog, "priced", {"orders": {0: 123}})
    report(context.catalog, "totals", {"priced": {0: 57, 1: 3}})
    assert not found.is_complete()
    assert found.missing() == [("orders", 0, 123, 124)]
    report(context.catalog, "priced", {"orders": {0: 200}})
    context.topics.given["priced"] = {0: 58, 1: 3}
    assert not found.is_complete()
    assert found.missing() == [("priced", 0, 57, 58)]
    context.topics.given["priced"] = {0: 80, 1: 30}
    report(context.catalog, "totals", {"priced": {0: 58, 1: 3}})
    assert found.is_complete()
    assert found.waits_for is None


def test_an_input_in_the_midst_waits_for_nothing_before_it(context: AtHand) -> None:
    context.topics.given |= {"priced": {0: 57}}
    report(context.catalog, "totals", {"priced": {0: 57}})
    assert wait(context, "totals TO INCLUDE priced[0]@56") == "totals includes priced[0]@56"
    context.topics.given |= {"orders": {0: 1}}
    with pytest.raises(NotIncluded, match="priced has read orders"):
        wait(context, "totals TO INCLUDE priced[0]@56, orders[0]@0")


def test_all_that_there_is_now(context: AtHand) -> None:
    context.topics.given |= {"orders": {0: 2}, "prices": {0: 3}, "notes": {0: 4}, "priced": {0: 5}}
    report(context.catalog, "priced", {"orders": {0: 2}, "prices": {0: 3}})
    report(context.catalog, "totals", {"notes": {0: 4}, "priced": {0: 4}})
    with pytest.raises(NotIncluded, match=r"^totals does not include all that its inputs held") as late:
        wait(context, "totals")
    assert "totals has read priced[0] to 4 of 5" in late.value.where
    report(context.catalog, "totals", {"notes": {0: 4}, "priced": {0: 5}})
    assert wait(context, "totals") == "totals includes all that its inputs held"


def test_a_view_into_a_stream_is_followed_too(context: AtHand) -> None:
    context.topics.given |= {"orders": {0: 5}, "all_orders": {0: 7}}
    report(context.catalog, "after_all", {"all_orders": {0: 7}})
    with pytest.raises(NotIncluded, match=r"gathered has read orders\[0\] to 0 of 5"):
        wait(context, "after_all TO INCLUDE orders[0]@4")
    report(context.catalog, "gathered", {"orders": {0: 5}})
    assert wait(context, "after_all TO INCLUDE orders[0]@4")
    assert wait(context, "after_all TO INCLUDE all_orders[0]@6")


def test_the_fragments_of_a_view_are_followed(context: AtHand) -> None:
    """Of one that Spark and the lookup workers run together."""
    text = (
        "CREATE MATERIALIZED VIEW both AS SELECT o.id AS id, p.price AS price FROM orders AS o JOIN notes AS n "
        "ON o.id = n.id JOIN prices AS p ON o.item = p.item SETTINGS join_algorithm = 'direct, hash'"
    )
    create(context.catalog, text)
    first, _ = context.catalog.fragments("both")
    context.topics.given |= {"orders": {0: 5}, first.topic: {0: 7}}
    with pytest.raises(NotIncluded, match=rf"{first.name} has read orders\[0\] to 0 of 5"):
        wait(context, "both TO INCLUDE orders[0]@4")
    report(context.catalog, first.name, {"orders": {0: 5}})
    with pytest.raises(NotIncluded, match=rf"both has read {first.topic}\[0\] to 0 of 7"):
        wait(context, "both TO INCLUDE orders[0]@4")
    report(context.catalog, "both", {first.topic: {0: 7}})
    assert wait(context, "both TO INCLUDE orders[0]@4")


@pytest.mark.parametrize(
    ("text", "kind", "what", "fix"),
    [
        ("nothing", UnknownName, 'no stream or view "nothing"', ""),
        ("orders", SqlError, '"orders" is not a materialized view', "SHOW VIEWS"),
        ("some", SqlError, '"some" is not a materialized view', "SHOW VIEWS"),
        ("priced TO INCLUDE notes[0]@0", SqlError, '"priced" does not read "notes"', "it reads orders, prices: "),
        ("priced TO INCLUDE some[0]@0", SqlError, '"priced" does not read "some"', "it reads orders, prices: "),
        ("priced TO INCLUDE priced[0]@0", SqlError, '"priced" does not read "priced"', "it reads orders, prices: "),
        ("totals TO INCLUDE ordrs[0]@0", UnknownName, '"ordrs"', 'did you mean "orders"? it reads notes, orders, pri'),
        ("looked TO INCLUDE prices[0]@0", SqlError, 'takes rows of "prices" as they stand', "it reads orders: "),
        ("priced TO INCLUDE orders[2]@0", SqlError, "there is no orders[2]", "its topic has 2 partitions, 0 to 1"),
        ("priced TO INCLUDE prices[1]@0", SqlError, "there is no prices[1]", "its topic has one partition, 0"),
        ("priced TO INCLUDE orders[0]@5", SqlError, "no record orders[0]@5: orders[0] ends at 5", "at 4 at most"),
        ("priced TO INCLUDE orders[1]@0", SqlError, "no record orders[1]@0: orders[1] ends at 0", "no record yet"),
    ],
)  # fmt: skip
def test_what_will_never_be_is_refused(context: AtHand, text: str, kind: type[SqlError], what: str, fix: str) -> None:
    context.topics.given |= {"orders": {0: 5, 1: 0}, "prices": {0: 1}, "notes": {0: 1}, "priced": {0: 1}}
    with pytest.raises(SqlError) as refused:
        wait(context, text)
    assert type(refused.value) is kind
    assert what in refused.value.what
    assert fix in refused.value.fix


def test_a_record_from_before_the_start_is_refused(context: AtHand) -> None:
    context.topics.given["orders"] = {0: 60}
    report(context.catalog, "priced", {"orders": {0: 60}}, starts={"orders": {0: 50}})
    with pytest.raises(SqlError, match=r"priced has begun to read orders\[0\] at 50, and never includes 49") as refused:
        wait(context, "priced TO INCLUDE orders[0]@49")
    assert refused.value.fix == "wait for orders[0]@50, or a later one"
    assert wait(context, "priced TO INCLUDE orders[0]@50")


def test_a_query_that_comes_no_further_is_told_with_the_way_on(context: AtHand) -> None:
    context.topics.given["orders"] = {0: 5}
    report(context.catalog, "priced", {"orders": {0: 3}})
    context.catalog.want("priced", Desired.PAUSED, now_ms=0)
    with pytest.raises(SqlError, match='"priced", which totals reads, is paused') as refused:
        wait(context, "totals TO INCLUDE orders[0]@4")
    assert refused.value.where == "priced has read orders[0] to 3 of 5"
    assert refused.value.fix == "RESUME priced; then wait again"
    context.catalog.want("priced", Desired.RUNNING, now_ms=0)
    failing = context.catalog.query("priced")
    context.catalog.report(failing.id, now_ms=0, actual=Actual.FAILED, error="a value does not fit")
    with pytest.raises(SqlError, match=r'^"priced" has failed') as refused:
        wait(context, "priced TO INCLUDE orders[0]@4")
    assert refused.value.where == "priced has read orders[0] to 3 of 5: a value does not fit"
    assert refused.value.fix == "fix that, then RESUME priced; then wait again"
    assert wait(context, "priced TO INCLUDE orders[0]@2")


def test_a_view_that_stands_still_for_its_successor_is_waited_for(context: AtHand) -> None:
    context.topics.given["orders"] = {0: 5}
    report(context.catalog, "priced", {"orders": {0: 3}})
    succession.begin(context.catalog, "priced", "priced_successor_01234567")
    context.catalog.want("priced", Desired.PAUSED, now_ms=0)
    with pytest.raises(NotIncluded):
        wait(context, "priced TO INCLUDE orders[0]@4")


def test_a_terminated_view_is_told(context: AtHand) -> None:
    context.catalog.want("priced", Desired.DROPPED, now_ms=0)
    with pytest.raises(SqlError, match='no query runs for "priced"') as refused:
        wait(context, "priced")
    assert "SHOW CREATE priced" in refused.value.fix


def test_where_nothing_runs_the_end_of_the_time_says_so(context: AtHand) -> None:
    context.topics.given["orders"] = {0: 5}
    with pytest.raises(NotIncluded) as late:
        wait(context, "priced TO INCLUDE orders[0]@4")
    assert "priced is down: no Spark runner has given a sign of life" in late.value.where
    assert "dovetail status" in late.value.fix


def test_a_wait_that_nobody_wants_any_more_ends(context: AtHand) -> None:
    context.topics.given["orders"] = {0: 5}
    interruption = Interruption()
    interruption.ask()
    with interruption.of_this_thread(), pytest.raises(Interrupted):
        await_included(context, parsed("WAIT FOR priced TO INCLUDE orders[0]@4 TIMEOUT 600"))


def test_a_long_wait_says_how_far_it_is(context: AtHand, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ends once the view has come so far."""
    context.topics.given["orders"] = {0: 5}
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        report(context.catalog, "priced", {"orders": {0: 3 + len(said)}})

    monkeypatch.setattr(waiting, "_SAY_AFTER_S", -1.0)
    telling = AtHand(context.settings, context.catalog, context.brokers, say=say, given=context.topics)
    assert wait_for(telling, parsed("WAIT FOR priced TO INCLUDE orders[0]@4")).text == "priced includes orders[0]@4"
    assert said == ["priced has read orders[0] to 0 of 5", "priced has read orders[0] to 4 of 5"]


def test_an_open_transaction_of_somebody_else_is_named(context: AtHand) -> None:
    context.topics.given["orders"] = {0: 5}
    context.topics.hidden["orders"] = 2
    report(context.catalog, "priced", {"orders": {0: 3}})
    with pytest.raises(NotIncluded, match="to 3 of 5, where an open transaction hides the rest"):
        wait(context, "priced TO INCLUDE orders[0]@4")


def test_rows_that_wait_for_a_watermark_are_told(context: AtHand) -> None:
    said: list[str] = []
    text = (
        "CREATE MATERIALIZED VIEW hourly AS SELECT window_start, count(*) AS n FROM tumble(orders, 1h) "
        "GROUP BY window_start EMIT AFTER WINDOW CLOSE"
    )
    create(context.catalog, text)
    telling = AtHand(context.settings, context.catalog, context.brokers, say=said.append)
    assert wait(telling, "hourly")
    assert said == ["rows of hourly that wait for a watermark are not in its topic yet"]
