"""GAP_FILL against plain loops over the rows, which come, change and go in random batches, with restarts between."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.sql.world import Row, World
from tests.tries import tries

DDL = (
    (
        "CREATE MUTABLE STREAM readings (id int, k int, v int64, d decimal(10, 2), f float64, s string, "
        "at datetime64(3)) PRIMARY KEY id"
    ),
    "CREATE STREAM log (k int, v int, at datetime64(3)) SETTINGS mode = 'changelog'",
    "CREATE TABLE months (id INT, v INT, at TIMESTAMP, PRIMARY KEY (id))",
    "CREATE TABLE instants (id INT, v INT, at TIMESTAMPTZ, PRIMARY KEY (id))",
)
COLUMNS = ("id", "k", "v", "d", "f", "s", "at")
FILLS = ("LOCF", "INTERPOLATE", "KEEPNULL")
START = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=1)

Values = tuple[object, ...]


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


# -- the reference --


def gap_filled(rows: Sequence[Row], by: Sequence[str], fills: dict[str, str]) -> Counter[Values]:
    """The rows, and those that are missing at each step from a row to the next one of its partition."""
    partitions: defaultdict[Values, list[Row]] = defaultdict(list)
    for row in rows:
        partitions[tuple(row[name] for name in by)].append(row)
    found: Counter[Values] = Counter()
    for members in partitions.values():
        ordered = sorted(members, key=in_order)
        for row, following in zip(ordered, [*ordered[1:], None], strict=True):
            found[tuple(row[name] for name in COLUMNS)] += 1
            for made in between(row, following, by, fills):
                found[tuple(made[name] for name in COLUMNS)] += 1
    return found


def in_order(row: Row) -> list[tuple[bool, object]]:
    """By time, then by the columns from left to right; NULL behind all values."""
    values = [row["at"], *(row[name] for name in COLUMNS if name != "at")]
    return [(value is None, 0 if value is None else value) for value in values]


def between(row: Row, following: Row | None, by: Sequence[str], fills: dict[str, str]) -> Iterator[Row]:
    first, last = row["at"], None if following is None else following["at"]
    if following is None or not isinstance(first, datetime) or not isinstance(last, datetime):
        return
    times: list[datetime] = []
    while first + STEP * (len(times) + 1) < last:
        times.append(first + STEP * (len(times) + 1))
    for number, time in enumerate(times, start=1):
        made: Row = {}
        for name in COLUMNS:
            fill = "LOCF" if name in by else fills.get(name, "KEEPNULL")
            made[name] = None
            if fill == "LOCF":
                made[name] = row[name]
            elif fill == "INTERPOLATE":
                made[name] = on_the_line(row[name], following[name], number, len(times) + 1)
        yield {**made, "at": time}


def on_the_line(first: object, last: object, number: int, steps: int) -> object:
    """The value after ``number`` of ``steps``."""
    match first, last:
        case int(), int():
            return first + (last - first) // steps * number
        case Decimal(), Decimal():
            exact = first + (last - first) * number / steps
            return exact.quantize(Decimal("0.01"), ROUND_HALF_UP)
        case float(), float():
            return first + (last - first) / steps * number
    return None


def test_the_reference() -> None:
    rows: list[Row] = [
        {"id": 1, "k": 1, "v": 10, "d": Decimal(1), "f": 0.0, "s": "a", "at": at(0)},
        {"id": 2, "k": 1, "v": 5, "d": None, "f": 3.0, "s": "b", "at": at(2.5)},
        {"id": 3, "k": 2, "v": 0, "d": None, "f": None, "s": None, "at": at(1)},
    ]
    found = gap_filled(rows, ["k"], {"v": "INTERPOLATE", "d": "INTERPOLATE", "f": "INTERPOLATE", "s": "LOCF"})
    added = found - Counter(tuple(row[name] for name in COLUMNS) for row in rows)
    assert added == Counter([(None, 1, 8, None, 1.0, "a", at(1)), (None, 1, 6, None, 2.0, "a", at(2))])


# -- against it --

time = st.none() | st.integers(0, 16).map(lambda halves: at(halves / 2))
number = st.none() | st.integers(-3, 9) | st.sampled_from([-(2**63), 2**63 - 1])
reading = st.fixed_dictionaries(
    {
        "id": st.integers(0, 5),
        "k": st.none() | st.integers(1, 2),
        "v": number,
        "d": st.none() | st.decimals(-99_999_999, 99_999_999, places=2),
        "f": st.none() | st.integers(-4, 4).map(lambda thirds: thirds / 3),
        "s": st.none() | st.sampled_from("xy"),
        "at": time,
    }
)
fills_of = st.fixed_dictionaries(
    {
        **dict.fromkeys("vdf", st.sampled_from(["", *FILLS])),
        "s": st.sampled_from(["", "LOCF", "KEEPNULL"]),
    }
)
steps = st.lists(st.tuples(st.booleans(), reading), max_size=16)


@settings(max_examples=tries(30))
@given(taken=steps, fills=fills_of, by=st.sampled_from([["k"], [], ["s", "k"]]), cut=st.integers(1, 5))
@example(
    taken=[(True, {"id": n, "k": 1, "v": n, "d": None, "f": None, "s": None, "at": at(4)}) for n in range(3)],
    fills=dict.fromkeys("vdf", "LOCF"),
    by=["k"],
    cut=2,
)
def test_it_is_the_reference(taken: list[tuple[bool, Row]], fills: dict[str, str], by: list[str], cut: int) -> None:
    chosen = {name: fill for name, fill in fills.items() if fill and name not in by}
    calls = [f"{fill}({name})" for name, fill in chosen.items()] + ([f"PARTITION_BY({', '.join(by)})"] if by else [])
    query = f"SELECT * EXCEPT (_tp_time) FROM {', '.join(['GAP_FILL(readings, at, INTERVAL 1 SECOND', *calls])})"
    world, current = World.of(*DDL), dict[object, Row]()
    world.start(query)
    for count, (comes, row) in enumerate(taken, start=1):
        if comes:
            current[row["id"]] = row
            world.insert("readings", said(row))
        elif (old := current.pop(row["id"], None)) is not None:
            world.delete("readings", said(old))
        if count % cut == 0:
            agrees(world, query, list(current.values()), by, chosen)
            if count % 2:
                world.engine.restart()
    agrees(world, query, list(current.values()), by, chosen)


def agrees(world: World, query: str, rows: list[Row], by: Sequence[str], fills: dict[str, str]) -> None:
    world.drain()
    assert min(world.net.values(), default=0) >= 0
    expected = Counter({tuple(map(said_value, row)): n for row, n in gap_filled(rows, by, fills).items()})
    assert world.table() == expected
    assert world.recomputed(query) == expected
    assert world.over_content(query) == expected


def said(row: Row) -> Row:
    """As it is written in a record."""
    return {name: str(value) if isinstance(value, Decimal) else said_value(value) for name, value in row.items()}


def said_value(value: object) -> object:
    """As ``World`` gives it."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return float(value) if isinstance(value, Decimal) else value


def table(query: str, stream: str, *rows: Row) -> list[Values]:
    world = World.of(*DDL)
    world.start(query)
    world.insert(stream, *rows)
    world.drain()
    assert world.table() == world.recomputed(query) == world.over_content(query)
    return sorted(world.table(), key=str)


def test_months_are_added_one_by_one() -> None:
    found = table(
        "SELECT at, v FROM GAP_FILL(months, at, INTERVAL '1' MONTH, LOCF(v))",
        "months",
        {"id": 1, "v": 1, "at": "2024-01-31 10:00:00"},
        {"id": 2, "v": 2, "at": "2024-04-30 10:00:00"},
    )
    assert [(str(time)[:10], v) for time, v in found] == [
        ("2024-01-31", 1),
        ("2024-02-29", 1),
        ("2024-03-29", 1),
        ("2024-04-29", 1),
        ("2024-04-30", 2),
    ]


def test_instants_are_filled_in_by_the_hours_of_utc() -> None:
    found = table(
        "SELECT at, v FROM GAP_FILL(instants, at, INTERVAL '1' DAY, INTERPOLATE(v))",
        "instants",
        {"id": 1, "v": 0, "at": "2024-03-30 12:00:00+01:00"},
        {"id": 2, "v": 20, "at": "2024-04-01 12:00:00+01:00"},
    )
    assert [(str(time)[:16], v) for time, v in found] == [
        ("2024-03-30 11:00", 0),
        ("2024-03-31 11:00", 10),
        ("2024-04-01 11:00", 20),
    ]


@pytest.mark.parametrize(("step", "rows"), [("500 microsecond", 2), ("1 millisecond", 1_000_000)])
def test_a_gap_of_too_many_rows_stays(step: str, rows: int) -> None:
    query = f"SELECT count(*) AS n FROM GAP_FILL(months, at, INTERVAL '{step}')"
    ends = {"id": 1, "v": 1, "at": "2024-01-01 00:00:00"}, {"id": 2, "v": 2, "at": "2024-01-01 00:16:39.999"}
    assert table(query, "months", *ends) == [(rows,)]


def test_what_is_above_it() -> None:
    """Conditions, groups, joins and windows over rows that are filled in."""
    filled = "GAP_FILL(months, at, INTERVAL '1' HOUR, LOCF(v), INTERPOLATE(id))"
    rows: list[Row] = [
        {"id": 1, "v": 1, "at": "2024-01-01 00:00:00"},
        {"id": 9, "v": 2, "at": "2024-01-01 04:00:00"},
    ]
    assert table(f"SELECT id FROM {filled} WHERE v = 1 AND at > '2024-01-01 01:00:00'", "months", *rows) == [(5,), (7,)]
    assert table(f"SELECT v, count(*) AS n, sum(id) AS s FROM {filled} GROUP BY v", "months", *rows) == [
        (1, 4, 16),
        (2, 1, 9),
    ]
    assert table(f"SELECT g.id AS i, m.v AS v FROM {filled} AS g JOIN months AS m ON g.at = m.at", "months", *rows) == [
        (1, 1),
        (9, 2),
    ]
    tumbled = f"SELECT window_start AS w, count(*) AS n FROM TUMBLE({filled}, at, INTERVAL '2' HOUR) GROUP BY w"
    assert [n for _, n in table(tumbled, "months", *rows)] == [2, 2, 1]


def test_rows_without_a_key_count_as_often_as_they_stand() -> None:
    world = World.of(*DDL)
    query = "SELECT k, v, at FROM GAP_FILL(log, at, INTERVAL 1 SECOND, LOCF(v), PARTITION_BY(k))"
    first, last = ({"k": 1, "v": n, "at": said_value(at(2 * n))} for n in range(2))
    world.start(query)
    world.insert("log", first, first, last)
    world.drain()
    assert sorted(world.table().values()) == [1, 1, 2]
    world.insert("log", {**first, "_tp_delta": -1}, {**first, "_tp_delta": -1})
    world.drain()
    assert world.table() == Counter({(1, 1, said_value(at(2))): 1})


def test_a_bounded_query() -> None:
    world = World.of(*DDL)
    world.insert("months", {"id": 1, "v": 1, "at": "2024-01-01"}, {"id": 2, "v": 2, "at": "2024-01-03"})
    for source in ("months", "table(months)"):
        query = f"SELECT v FROM GAP_FILL({source}, at, INTERVAL '1' DAY, LOCF(v)) ORDER BY at"
        assert world.over_content(query) == Counter({(1,): 2, (2,): 1})
