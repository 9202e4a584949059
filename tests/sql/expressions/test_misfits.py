"""What the engine refuses is told in what the user wrote, and the types of the columns in it."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.world import World

VALUES = {"i": "int", "t": "string", "at": "datetime64(3)", "f": "float64", "o": "bool", "a": "array(int)"}
ENGINE_WORDS = ("VARCHAR", "LITERAL", "given name and argument types", "explicit cast", "Binder", "operator")


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(f"CREATE STREAM s ({', '.join(f'{name} {kind}' for name, kind in VALUES.items())})")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("lower(i)", "lower(s.i) has no value, as s.i is an integer"),
        ("a[t]", "s.a[s.t] has no value, as s.a is an array and s.t is a text"),
        # Of calls in calls the one that is refused.
        ("length(lower(i)) + 1", "lower(s.i) has no value, as s.i is an integer"),
        ("sum(greatest(i, t))", "greatest(s.i, s.t) has no value, as s.i is an integer and s.t is a text"),
        ("array_map(x -> lower(x), a)", "lower(x) has no value"),
    ],
)
def test_what_is_refused_is_what_was_written(world: World, written: str, message: str) -> None:
    with pytest.raises(SqlError) as refused:
        world.plan(f"SELECT {written} AS v FROM s")
    assert refused.value.what.startswith(message)
    assert "CAST" in refused.value.fix


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(
    "call",
    ["{} > 1", "{} = [1]", "lower({})", "replace({}, 'a', 'b')", "sqrt({})", "coalesce({}, i, t)", "greatest({}, t)",
     "{} LIKE 'x'", "{}[1]", "CASE WHEN o THEN {} ELSE 1 END", "date_trunc('hour', {})", "{} || t", "round({})",
     "split_by_char(',', {})", "{} IN (1, 2)", "array_concat({}, a)", "to_hour({})", "json_length({})"],
)  # fmt: skip
def test_the_words_of_the_engine_are_not_the_user_s(world: World, call: str, name: str) -> None:
    try:
        world.plan(f"SELECT {call.format(name)} AS v FROM s")
    except SqlError as refused:
        assert not any(word in str(refused) for word in ENGINE_WORDS)  # noqa: PT017
