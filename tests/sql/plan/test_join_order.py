"""Orders of joins, as text and read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import SqlError
from dovetail.sql.plan.join_order import JoinOrder, JoinPair, JoinTree, inputs_of_tree, orders_text, read_orders

NAMES = st.text(min_size=1, max_size=4) | st.sampled_from(
    ["a", "B", "()", ",", '"', '""', " ", "a b", "é", "((a b) c)"]
)
TREES: st.SearchStrategy[JoinTree] = st.recursive(NAMES, lambda below: st.builds(JoinPair, below, below), max_leaves=6)
PAIRS = st.builds(JoinPair, TREES, TREES)


@given(st.lists(PAIRS, max_size=3).map(tuple))
def test_what_is_written_is_read_again(trees: tuple[JoinPair, ...]) -> None:
    assert read_orders(orders_text(trees)) == trees


@given(st.text(alphabet='()ab ,"', max_size=12))
def test_any_other_text_is_refused_or_read_as_what_it_says(text: str) -> None:
    try:
        trees = read_orders(text)
    except SqlError:
        return
    assert read_orders(orders_text(trees)) == trees
    assert [word for word in text if word in "ab"] == [
        word for tree in trees for name in inputs_of_tree(tree) for word in name if word in "ab"
    ]


@pytest.mark.parametrize(
    "text", ["a", "(a)", "(a b", "(a b) c", "(a b c)", ",", "(a b),", "(a b) (c d)", '(a "b)', ")("]
)
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="join_order cannot be"):
        read_orders(text)


def test_it_says_what_it_keeps_with_two_digits() -> None:
    order = JoinOrder(JoinPair("a", JoinPair("b", "c")), 1234.5, 99_999, {"a": 0.4, "b": 25, "c": 1_000_000})
    assert order.readable == (
        "Join order (a (b c))  about 1,200 rows kept between joins, as written 100,000  "
        "estimated rows: a 0, b 25, c 1,000,000"
    )
