"""Operators of a query that views keep already, each for itself, and what would keep them once.

    enriched   orders JOIN users              the query reads FROM enriched instead
    tired      orders JOIN users, GROUP BY    a view of the join, which both read

They are found as equal operators of one query are (``sql.rules.kept_once.subplans``), the largest first. Nothing is
rewritten: views begin, pause, change and go one by one, and one that reads another has to say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dovetail.sql.across_views.common_view import Reader, common_view, streams
from dovetail.sql.across_views.whole_result import WholeResult, whole_result
from dovetail.sql.engines import Engine
from dovetail.sql.plan.nodes import Aggregate, Keyed, Map, Node, Output, Scan
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.state.common_subplans import Subplan, as_subplan
from dovetail.sql.planner import Plan
from dovetail.sql.relations import Relations
from dovetail.sql.rules.kept_once.subplans import together

WORTH_ROWS = 10_000
"""From so many rows on it is told that a stream is kept by its primary key elsewhere: that alone is often little."""


@dataclass(frozen=True)
class OtherView:
    """A view at work. ``held``: its operators, each with the rows that it holds.

    into  its rows are among others, in the stream that it writes INTO
    """

    name: str
    plan: Plan
    held: tuple[tuple[Node, int], ...] = ()
    into: bool = False

    def rows(self, node: Node) -> int:
        """That ``node`` holds, with all below it."""
        inside = list(walk(node))
        return sum(rows for operator, rows in self.held if any(operator is one for one in inside))

    @property
    def whole(self) -> WholeResult | None:
        return None if self.into else whole_of(self.plan)


@dataclass(frozen=True)
class KeptElsewhere:
    """An operator, and the views that keep it.

    by         the views, in their order
    rows       that these hold for it, all together
    read       the one of them that is all of it, and can be read instead; '' where none is
    own        it is all of the query that is asked about, which those could read
    statement  of a view that all could read; '' where none is known
    """

    node: Subplan
    by: tuple[str, ...]
    rows: int
    read: str = ""
    own: bool = False
    statement: str = ""

    @property
    def title(self) -> str:
        """``the join of orders and users``"""
        made_of = _listed(streams(self.node))
        if isinstance(self.node, Keyed):
            return f"the current row of each key of {made_of}"
        return f"the groups of {made_of}" if isinstance(self.node, Aggregate) else f"the join of {made_of}"

    @property
    def from_now_on(self) -> tuple[str, ...]:
        """The streams that each view reads from the moment on in which it was made."""
        scans = (one for one in walk(self.node) if isinstance(one, Scan) and one.latest)
        return tuple(dict.fromkeys(scan.stream.name for scan in scans))

    def short(self, name: str) -> str:
        """A line for who creates the view ``name``."""
        if self.read:
            return f"{self.title} is the view {self.read} already: EXPLAIN {name} says more"
        return f"{self.title} is kept by {_views(self.by)} too: EXPLAIN {name} says how to keep it once"

    @property
    def readable(self) -> str:
        """All that is known of it, the statement on a line of its own."""
        held = f" ({self.rows:,} row{'' if self.rows == 1 else 's'} held)" if self.rows else ""
        if self.read:
            return f"{self.title} is the view {self.read}{held}: FROM {self.read} would read it{self._begun}"
        kept = f"{self.title} is kept by {_views(self.by)} too{held}"
        if self.own:
            return f"{kept}: created anew, FROM this view, they would read it{self._begun}"
        once = f"{kept}: as a view of its own, which all of them read, it would be kept once{self._begun}"
        return f"{once}\n{self.statement}" if self.statement else once

    @property
    def _begun(self) -> str:
        if not self.from_now_on:
            return " instead of keeping it again" if self.read or self.own else ""
        return f"; it would have the rows of {_listed(list(self.from_now_on))} since that view was made"


def whole_of(plan: Plan) -> WholeResult | None:
    return None if plan.output is None else whole_result(plan.output)


def subplans_of(output: Output) -> Iterator[Subplan]:
    """The operators of a fragment that keep what others might keep too."""
    return (subplan for node in walk(output) if (subplan := as_subplan(node)) is not None)


def kept_elsewhere(plan: Plan, others: Sequence[OtherView], catalog: Relations) -> list[KeptElsewhere]:
    """The largest operators of ``plan`` that ``others`` keep, in the order of the plan."""
    finder = _Finder(others, None if plan.limit is not None else whole_of(plan), catalog)
    found: list[KeptElsewhere] = []
    for output in _of_spark(plan):
        for one in finder.under(output):
            if all(one.node != before.node for before in found):
                found.append(one)
    return found


@dataclass(frozen=True)
class _Kept:
    """An operator of another view; ``needed``: its columns that the node above it reads."""

    view: OtherView
    node: Subplan
    needed: tuple[str, ...]


@dataclass(frozen=True)
class _Finder:
    others: Sequence[OtherView]
    own: WholeResult | None
    catalog: Relations

    def under(self, above: Output | Node) -> Iterator[KeptElsewhere]:
        for node in above.inputs:
            subplan = as_subplan(node)
            kept = [] if subplan is None else self._keeping(subplan)
            if subplan is None or not kept:
                yield from self.under(node)
            else:
                yield self._told(subplan, _needed(above, subplan), kept)

    def _keeping(self, subplan: Subplan) -> list[_Kept]:
        """The views that keep it, each once."""
        found: list[_Kept] = []
        for view in self.others:
            kept = next((one for one in _operators(view) if together(subplan, one.node) is not None), None)
            if kept is not None and (not isinstance(subplan, Keyed) or view.rows(kept.node) >= WORTH_ROWS):
                found.append(kept)
        return found

    def _told(self, subplan: Subplan, needed: tuple[str, ...], kept: Sequence[_Kept]) -> KeptElsewhere:
        by, rows = tuple(one.view.name for one in kept), sum(one.view.rows(one.node) for one in kept)
        for one in kept:
            whole = one.view.whole
            if whole is not None and whole.holds(subplan, needed):
                return KeptElsewhere(subplan, (one.view.name,), one.view.rows(one.node), read=one.view.name)
        if self.own is not None and all(self.own.holds(one.node, one.needed) for one in kept):
            return KeptElsewhere(subplan, by, rows, own=True)
        return KeptElsewhere(subplan, by, rows, statement=self._statement(subplan, needed, kept))

    def _statement(self, subplan: Subplan, needed: tuple[str, ...], kept: Sequence[_Kept]) -> str:
        node, columns = subplan, list(needed)
        for one in kept:
            found = together(node, one.node)
            of_all = None if found is None else as_subplan(found[0].node)
            if found is None or of_all is None:
                return ""
            node = of_all
            columns += [found[1].names[name] for name in one.needed]
        readers = [Reader(subplan, needed), *(Reader(one.node, one.needed) for one in kept)]
        return common_view(node, columns, readers, self.catalog)


def _of_spark(plan: Plan) -> Iterator[Output]:
    return (fragment.output for fragment in plan.fragments if fragment.engine is Engine.SPARK)


def _operators(view: OtherView) -> Iterator[_Kept]:
    for output in _of_spark(view.plan):
        for above in walk(output):
            for node in above.inputs:
                if (subplan := as_subplan(node)) is not None:
                    yield _Kept(view, subplan, _needed(above, subplan))


def _needed(above: Output | Node, subplan: Subplan) -> tuple[str, ...]:
    """The columns of ``subplan`` that the node ``above`` it reads. What the key of a record is made of, every view has
    of its own.
    """
    if isinstance(above, Map):
        read = [expr for _, expr in above.columns] + ([above.where] if above.where is not None else [])
    elif isinstance(above, Output):
        read = [expr for _, expr in above.columns]
    else:
        return tuple(subplan.schema.names)
    names = {name for expr in read for name in expr.columns}
    return tuple(name for name in subplan.schema.names if name in names)


def _views(names: Sequence[str]) -> str:
    return f"the view{'s' if len(names) > 1 else ''} {_listed(list(names))}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
