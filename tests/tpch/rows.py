"""Rows of TPC-H's tables, few and drawn from few values, so that the conditions of every query are met by some.

Made here, without dbgen: what counts is which rows meet, not how the benchmark spreads them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Row = dict[str, object]
Key = tuple[int, ...]
T = TypeVar("T")

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    *(("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3)),
    *(("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4)),
    *(("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3)),
    *(("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1)),
)
TRADING = (2, 3, 6, 7, 18, 20)
"""The nations that have suppliers and customers: those that the queries name, and one of Asia."""
BRANDS_BOXES = (("Brand#12", "SM CASE"), ("Brand#23", "MED BOX"), ("Brand#34", "LG BOX"), ("Brand#45", "JUMBO JAR"))
TYPES = ("ECONOMY ANODIZED STEEL", "PROMO BURNISHED BRASS", "LARGE PLATED BRASS", "MEDIUM POLISHED TIN")
SIZES = (3, 3, 9, 15, 15, 49)
COLOURS = ("forest", "green", "almond")
MODES = ("AIR", "AIR REG", "MAIL", "SHIP", "RAIL")
INSTRUCTIONS = ("DELIVER IN PERSON", "DELIVER IN PERSON", "COLLECT COD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")
SEASONS = (
    "1993-07-10",
    "1993-10-20",
    "1994-01-15",
    "1994-04-01",
    "1995-01-20",
    "1995-08-20",
    "1995-12-20",
    "1996-02-10",
)
"""About when orders are made: the queries ask for these times."""

PARTS, SUPPLIERS, CUSTOMERS, ORDERS, LINES = 24, 12, 30, 80, 5


def _money(least: int, most: int, chance: np.random.Generator) -> str:
    return f"{chance.integers(least * 100, most * 100) / 100:.2f}"


@dataclass(frozen=True)
class Table:
    """``keys``: each column of the primary key, with how many values it has; ``rest`` draws the other columns."""

    name: str
    keys: Mapping[str, int]
    rest: Callable[[np.random.Generator], Row]

    def key(self, chance: np.random.Generator) -> Key:
        return tuple(int(chance.integers(1, count + 1)) for count in self.keys.values())

    def row(self, key: Key, chance: np.random.Generator) -> Row:
        return {**dict(zip(self.keys, key, strict=True)), **self.rest(chance)}


def _one(values: Sequence[T], chance: np.random.Generator) -> T:
    return values[int(chance.integers(len(values)))]


def _supplier(chance: np.random.Generator) -> Row:
    return {
        "s_name": f"Supplier#{chance.integers(99):09}",
        "s_address": f"dock {chance.integers(9)}",
        "s_nationkey": _one(TRADING, chance),
        "s_phone": f"{chance.integers(10, 35)}-555",
        "s_acctbal": _money(-999, 9999, chance),
        "s_comment": _one(("quick", "Customer has Complaints", "silent"), chance),
    }


def _part(chance: np.random.Generator) -> Row:
    brand, container = _one(BRANDS_BOXES, chance)
    return {
        "p_name": f"{_one(COLOURS, chance)} {_one(COLOURS, chance)}",
        "p_mfgr": f"Manufacturer#{chance.integers(1, 6)}",
        "p_brand": brand,
        "p_type": _one(TYPES, chance),
        "p_size": _one(SIZES, chance),
        "p_container": container,
        "p_retailprice": _money(900, 2000, chance),
        "p_comment": "",
    }


def _partsupp(chance: np.random.Generator) -> Row:
    return {
        "ps_availqty": int(chance.integers(1, 200)),
        "ps_supplycost": _money(1, 4, chance),
        "ps_comment": "",
    }


def _customer(chance: np.random.Generator) -> Row:
    return {
        "c_name": f"Customer#{chance.integers(99):09}",
        "c_address": f"street {chance.integers(9)}",
        "c_nationkey": _one(TRADING, chance),
        "c_phone": f"{_one((13, 17, 18, 23, 29, 30, 31, 11), chance)}-{chance.integers(100, 999)}",
        "c_acctbal": _money(-999, 9999, chance),
        "c_mktsegment": _one(("BUILDING", "AUTOMOBILE"), chance),
        "c_comment": "",
    }


def _order(chance: np.random.Generator) -> Row:
    made = dt.date.fromisoformat(_one(SEASONS, chance)) + dt.timedelta(days=int(chance.integers(60)))
    return {
        # Some customers have no order.
        "o_custkey": int(chance.integers(1, CUSTOMERS * 2 // 3)),
        "o_orderstatus": _one(("F", "O", "F"), chance),
        "o_totalprice": _money(900, 90_000, chance),
        "o_orderdate": str(made),
        "o_orderpriority": _one(PRIORITIES, chance),
        "o_clerk": "",
        "o_shippriority": 0,
        "o_comment": _one(("plain", "some special packing requests", "special"), chance),
    }


def _lineitem(chance: np.random.Generator) -> Row:
    sent = dt.date.fromisoformat(_one(SEASONS, chance)) + dt.timedelta(days=int(chance.integers(1, 90)))
    promised = sent + dt.timedelta(days=int(chance.integers(-20, 40)))
    came = sent + dt.timedelta(days=int(chance.integers(1, 30)))
    return {
        "l_partkey": int(chance.integers(1, PARTS + 1)),
        "l_suppkey": int(chance.integers(1, SUPPLIERS + 1)),
        "l_quantity": f"{_one((1, 2, 5, 11, 20, 25, 90, 150), chance)}.00",
        "l_extendedprice": _money(900, 9000, chance),
        "l_discount": f"0.{_one((0, 5, 6, 7, 10), chance):02}",
        "l_tax": f"0.0{chance.integers(9)}",
        "l_returnflag": _one(("R", "A", "N"), chance),
        "l_linestatus": _one(("O", "F"), chance),
        "l_shipdate": str(sent),
        "l_commitdate": str(promised),
        "l_receiptdate": str(came),
        "l_shipinstruct": _one(INSTRUCTIONS, chance),
        "l_shipmode": _one(MODES, chance),
        "l_comment": "",
    }


FIXED: Mapping[str, list[Row]] = {
    "region": [{"r_regionkey": key, "r_name": name, "r_comment": ""} for key, name in enumerate(REGIONS)],
    "nation": [
        {"n_nationkey": key, "n_name": name, "n_regionkey": region, "n_comment": ""}
        for key, (name, region) in enumerate(NATIONS)
    ],
}
"""The tables whose rows are the same from the start."""

CHANGING = (
    Table("supplier", {"s_suppkey": SUPPLIERS}, _supplier),
    Table("part", {"p_partkey": PARTS}, _part),
    Table("partsupp", {"ps_partkey": PARTS, "ps_suppkey": SUPPLIERS}, _partsupp),
    Table("customer", {"c_custkey": CUSTOMERS}, _customer),
    Table("orders", {"o_orderkey": ORDERS}, _order),
    Table("lineitem", {"l_orderkey": ORDERS, "l_linenumber": LINES}, _lineitem),
)
SHARES = (1, 2, 6, 2, 5, 12)
"""Of the changes, how many each of CHANGING has."""
