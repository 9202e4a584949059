"""docs/nexmark.md, made from the queries and what EXPLAIN says of them: ``python -m tests.nexmark.page`` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Select
from tests.nexmark.queries import QUERIES, TABLES, WINDOWED, once
from tests.paths import ROOT
from tests.sql.world import statements

PAGE = ROOT / "docs" / "nexmark.md"
_STATE = re.compile(
    r"^[│ └├─]*(?P<operator>[A-Z]\w+(?: [a-z]+)?)  .*?state: (?P<state>.*?)(?:  engine=\w+)?$", re.MULTILINE
)
_HEAD = """\
# Nexmark

The queries of [Nexmark](https://github.com/nexmark/nexmark) that join or aggregate, and those that RisingWave adds
(q101 to q106), over three streams of an auction house: persons, auctions, bids. Their statements are in
[examples/nexmark](../examples/nexmark/), the tables in `tables.sql`:

```
dovetail run examples/nexmark/tables.sql
{ echo 'CREATE MATERIALIZED VIEW q3 AS'; cat examples/nexmark/q3.sql; } | dovetail sql
```

`benchmarks/nexmark.py` makes the events, in columns, each of its number and nothing else: proportions, hot keys,
references to what has not come yet, and beside those of the original late rows, missing keys, persons who move or
leave. `python -m benchmarks.nexmark_queries --only q3,q20` gives the rate of a query, Kafka to Kafka.

Each query runs in tests in memory, over batches that chance has cut, and as a view of one stack, through Kafka, Spark
and a lookup worker: the changelog is never below zero, and adds up to what DuckDB gives for the same text over the same
events. So do the streams of `timeplus/` in the functions of that dialect, save q7, q101, q103 and q104: over streams,
to which rows are only added, each row of these is answered once, with what there is when it comes.

| query | gives | output | state, as EXPLAIN tells it |
| --- | --- | --- | --- |
"""


def page() -> str:
    forms = {name: [(name, query)] for name, query in QUERIES.items()}
    for name in WINDOWED:
        forms[name].append((f"{name}, `EMIT ON WINDOW CLOSE`", once(name)))
    catalog = Catalog.open("sqlite://")
    for table in statements(TABLES):
        catalog.create(table, now_ms=0)
    return _HEAD + "".join(_line(title, query, catalog) for form in forms.values() for title, query in form)


def _line(title: str, query: str, catalog: Catalog) -> str:
    gives = query.splitlines()[0].removeprefix("-- ").removesuffix(".")
    statement = parse_one(query)
    assert isinstance(statement, Select)
    plan = plan_query("q", statement, catalog)
    kind = "append" if plan.explain().startswith("Append") else "changelog"
    return f"| {title} | {gives} | {kind} | {'<br>'.join(dict.fromkeys(_states(plan)))} |\n"


def _states(plan: Plan) -> Iterator[str]:
    for found in _STATE.finditer(plan.explain()):
        if found["operator"].split()[0] != "Window":
            yield f"{found['operator']}: {found['state']}"


if __name__ == "__main__":
    PAGE.write_text(page())
