"""A stack under load whose processes are killed, one after the other, and which is compared at the end."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.changelog.errors import DovetailError
from dovetail.runtime.clock import now_ms
from dovetail.services.liveness import QueryStatus, account, query_statuses
from dovetail.services.session import Rows, Session
from dovetail.services.session.input_progress import InputProgress
from dovetail.services.stack import Stack, temporary_stack
from tests.chaos.load import KEYS, PARTITIONS, Load
from tests.chaos.victims import Victims
from tests.servers import mariadb

HEAL_S = 300.0
"""The longest that all views may take to run again and to have read what there is."""
PACK_AFTER_S = 3
"""How long views are quiet: they share queries, and leave them, while processes are killed."""
_COMPONENTS = ("kafka", "redis", "spark", "worker")
_POLL_S = 0.2
_STREAMS = (
    "CREATE STREAM orders (n int64, k int64, v int64, ts datetime64(3))",
    "CREATE STREAM clicks (n int64, k int64, w int64, ts datetime64(3))",
    "CREATE STREAM stock (k int64, held int64) PRIMARY KEY (k) SETTINGS mode = 'versioned_kv'",
)
_VIEWS = {
    "both": "SELECT orders.n AS o, clicks.n AS c, orders.k AS k, v, w FROM orders FULL JOIN clicks"
    " ON orders.k = clicks.k AND orders.n = clicks.n",
    "totals": "SELECT k, count(*) AS times, sum(v) AS total, min(v) AS least FROM orders GROUP BY k",
    "near": "SELECT orders.n AS o, clicks.n AS c, orders.k AS k FROM orders JOIN clicks"
    " ON orders.k = clicks.k AND date_diff_within(200ms, orders.ts, clicks.ts)",
    "held": "SELECT totals.k AS k, times, held FROM totals JOIN stock ON totals.k = stock.k",
    "named": "SELECT orders.n AS n, orders.k AS k, name FROM orders LEFT JOIN products ON orders.k = products.k",
}
_SETTINGS = {"named": "join_algorithm = 'direct', "}
_OF_TOPIC = "SELECT n, k, name FROM table(named)"


@dataclass
class Account:
    """What was done, and what came of it."""

    kills: Counter[str] = field(default_factory=Counter)
    heal_s: list[float] = field(default_factory=list)
    restarts: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        slowest = f"{max(self.heal_s):.1f} s at the most" if self.heal_s else "none was waited for"
        return "\n".join(
            [
                f"{self.kills.total()} kills: " + ", ".join(f"{name} {n}" for name, n in sorted(self.kills.items())),
                f"healed with no hand {len(self.heal_s)} times while it was watched, {slowest}",
                "restarts: " + ", ".join(f"{name} {n}" for name, n in self.restarts.items()),
                "compared: " + ", ".join(f"{name} {n:,} rows" for name, n in self.rows.items()),
                "no difference" if not self.differences else "DIFFERENCES\n" + "\n".join(self.differences),
            ]
        )


class Chaos:
    """One run. ``say`` takes lines of progress."""

    def __init__(self, stack: Stack, session: Session, victims: Victims, seed: int, say: Callable[[str], None]) -> None:
        self._stack = stack
        self._session = session
        self._victims = victims
        self._chance = random.Random(seed)
        self._say = say
        self.account = Account()

    def prepare(self) -> Load:
        """The streams, the views, and a load that runs."""
        source = self._victims.source
        source.execute("CREATE TABLE shop.products (k bigint PRIMARY KEY, name varchar(40))")
        rows = ", ".join(f"({key}, 'product {key}')" for key in range(KEYS - 1))
        source.execute(f"INSERT INTO shop.products VALUES {rows}")
        for statement in _STREAMS:
            shards = f"shards = {PARTITIONS}"
            self._session.run(f"{statement}, {shards}" if "SETTINGS" in statement else f"{statement} SETTINGS {shards}")
        self._session.run(
            "CREATE DICTIONARY products (k int64, name string) PRIMARY KEY k SOURCE(MYSQL("
            f"HOST '{source.host}' PORT {source.port} USER '{source.user}' PASSWORD '{source.password}' DB 'shop'"
            " TABLE 'products')) LAYOUT(HYBRID_HASH_CACHE(TTL 5 PATH 'products' MAX_HOT_KEY_COUNT 10))"
        )
        for name, query in _VIEWS.items():
            settings = f"{_SETTINGS.get(name, '')}seek_to = 'earliest'"
            self._session.run(f"CREATE MATERIALIZED VIEW {name} AS {query} SETTINGS {settings}")
        load = Load(self._session.context.brokers.servers, self._chance.randrange(1 << 30))
        load.start()
        return load

    def kill_until(self, is_over: Callable[[Account], bool]) -> None:
        """Every kind once, in any order, then every kind again. What is away already is killed when it is back."""
        waiting: list[str] = []
        while not is_over(self.account):
            self._victims.tend_source()
            if not waiting:
                waiting = list(self._victims.kinds)
                self._chance.shuffle(waiting)
            kind = waiting.pop()
            if not self._victims.kinds[kind](self._chance):
                waiting.insert(0, kind)
                self._rest(_POLL_S)
                continue
            self.account.kills[kind] += 1
            self._say(f"kill {self.account.kills.total()}: {kind}")
            if self._chance.random() < 0.4:
                self._await_healed()
            else:
                self._rest(self._chance.uniform(0.1, 4.0))

    def _rest(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self._victims.tend_source()
            time.sleep(_POLL_S)

    def _await_healed(self) -> None:
        """All views run, and have read what there was when the last kill was made. Fails where a hand is needed."""
        begun_s = time.monotonic()
        wanted: dict[str, int] | None = None
        healed_s: dict[str, float] = {}
        while True:
            self._victims.tend_source()
            found = self._statuses()
            failed = [one for one in found if one.state == "failed"]
            assert not failed, account(failed)
            ends = self._ends()
            wanted = wanted or ends
            if wanted:
                left = [one for one in found if not (one.healthy and self._read(one) >= wanted["orders"])]
                for one in found:
                    if one in left:
                        healed_s.pop(one.query.name, None)
                    else:
                        healed_s.setdefault(one.query.name, time.monotonic() - begun_s)
                if not left:
                    break
            assert time.monotonic() - begun_s < HEAL_S, self._complaint(found, wanted)
            time.sleep(_POLL_S)
        self.account.heal_s.append(time.monotonic() - begun_s)
        last = max(healed_s, key=healed_s.__getitem__)
        self._say(f"healed after {self.account.heal_s[-1]:.1f} s, {last} the last")

    def _complaint(self, found: list[QueryStatus], wanted: dict[str, int] | None) -> str:
        read = {one.query.name: self._read(one) for one in found}
        phases = {line.name: f"{line.phase} {line.reason}" for line in self._stack.status()}
        return f"not healed after {HEAL_S:g} s\n{account(found)}\nread {read} of {wanted}\n{phases}"

    def _statuses(self) -> list[QueryStatus]:
        return query_statuses(self._session.context.catalog, now_ms())

    def _ends(self) -> dict[str, int] | None:
        """Records in the topics; None while the broker is away."""
        try:
            return {name: sum(self._session.context.topics.ends(name).values()) for name in ("orders",)}
        except DovetailError:
            return None

    def _read(self, one: QueryStatus) -> int:
        offsets = InputProgress.of(one.query).offsets
        ends = offsets.get("orders")
        return sum(ends.values()) if ends is not None else 1 << 60

    # -- at the end

    def compare(self) -> None:
        """Everything that the views hold with what a batch over their inputs gives."""
        self._await_healed()
        for name in _VIEWS:
            if name == "named":
                self._compare_lookup()
                continue
            verified = self._session.verify(name)
            self.account.rows[name] = verified.found
            if not verified.holds:
                rows = verified.difference.slice(0, 10).to_pylist()
                self.account.differences.append(f"{name}: {verified.difference.num_rows} rows, as {rows}")
        self.account.restarts = {one.query.name: one.query.restarts for one in self._statuses()}

    def _compare_lookup(self) -> None:
        names: dict[object, str] = {key: f"product {key}" for key in range(KEYS - 1)}
        orders = self._rows("SELECT n, k FROM table(orders)")
        expected: Counter[tuple[object, ...]] = Counter((n, k, names.get(k)) for n, k in orders)
        found = Counter(self._rows(_OF_TOPIC))
        self.account.rows["named"] = found.total()
        if found != expected:
            missing, surplus = expected - found, found - expected
            self.account.differences.append(
                f"named: {missing.total()} missing, as {list(missing)[:5]}; {surplus.total()} too many, as"
                f" {list(surplus)[:5]}"
            )

    def _rows(self, query: str) -> Iterator[tuple[object, ...]]:
        [result] = self._session.run(query)
        assert isinstance(result, Rows)
        return zip(*(column.to_pylist() for column in result.table.columns), strict=True)


@contextmanager
def world(folder: Path, seed: int, say: Callable[[str], None]) -> Iterator[Chaos]:
    """A stack with all its components, and the source of a dictionary."""
    with (
        mariadb(folder / "mariadb") as source,
        temporary_stack(folder / "stack", _COMPONENTS, broker_wait_s=20, pack_after_s=PACK_AFTER_S) as stack,
        Session.open(stack.connected_settings()) as session,
    ):
        yield Chaos(stack, session, Victims(stack, source), seed, say)


def run(folder: Path, seed: int, is_over: Callable[[Account], bool], say: Callable[[str], None]) -> Account:
    """Raises AssertionError where something does not heal by itself."""
    with world(folder, seed, say) as chaos:
        load = chaos.prepare()
        try:
            chaos.kill_until(is_over)
        finally:
            load.stop()
        chaos.compare()
        return chaos.account
