"""Who reads a relation, and who of them could not go on if its definition were another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.services.session.alter.proposal import scans_of
from dovetail.sql.bind.written.stars import stars_noted
from dovetail.sql.catalog import Catalog, Relation, What
from dovetail.sql.catalog.records import RelationDefinition
from dovetail.sql.planner import plan_query
from dovetail.sql.relations import Relations
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import (
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateView,
    Drop,
    Index,
    Select,
    Statement,
)


@dataclass(frozen=True)
class AlteredCatalog:
    """The catalog as it would be with some relations of other definitions."""

    catalog: Catalog
    altered: Mapping[str, Relation]

    def get(self, name: str) -> Relation:
        return self.altered.get(name) or self.catalog.get(name)

    def indexes(self, stream: str) -> Sequence[Index]:
        return self.catalog.indexes(stream)

    def function(self, name: str) -> CreateFunction | None:
        return self.catalog.function(name)


def users_of(catalog: Catalog, relation: Relation) -> list[Relation]:
    """Whatever uses it, directly or not: users first."""
    going = catalog.going(Drop(relation.what, relation.name, cascade=True))
    return [user for user in going if user.name != relation.name]


def with_columns_named(catalog: Catalog, altered: Relation) -> list[Relation]:
    """The views that would read more columns of ``altered``, as it has them then, by a ``*``: with the columns in its
    place that it stands for now. So they stay what they are, as views of PostgreSQL do.
    """
    named: dict[str, Relation] = {}
    for user in reversed(users_of(catalog, altered)):
        view = user.definition
        if not isinstance(view, CreateView):
            continue
        with stars_noted() as stars:
            now = _planned(user.name, view, catalog)
        written_out = stars.written_out(user.ddl)
        then = AlteredCatalog(catalog, {altered.name: altered, **named})
        if written_out != user.ddl and now != _planned(user.name, view, then):
            named[user.name] = replace(user, ddl=written_out)
    return list(named.values())


def expect_read_alike(
    catalog: Catalog,
    altered: Relation,
    columns: Collection[str],
    where: str,
    by: str,
    readers: Sequence[Relation] = (),
) -> None:
    """Raises Unsupported where ``changed_readers`` finds some; ``by``: what they may read otherwise."""
    if changed := changed_readers(catalog, altered, columns, readers):
        raise Unsupported(
            f'{", ".join(changed)} would read "{altered.name}" otherwise: {by}',
            where=where,
            fix=f"drop {', '.join(changed)} first; a view that names its columns does not see one that is added",
        )


def changed_readers(
    catalog: Catalog, altered: Relation, columns: Collection[str], readers: Sequence[Relation] = ()
) -> list[str]:
    """The names of what would not be what it is: a plan that is made anew must be the one that runs.

    altered  the relation with its other definition, which has these ``columns``
    readers  those of its readers that get another text with it
    """
    then = AlteredCatalog(catalog, {one.name: one for one in (altered, *readers)})
    users = users_of(catalog, altered)
    changed = [user.name for user in users if _reads_otherwise(user.definition, catalog, then, columns)]
    views = {user.name for user in catalog.relations(What.VIEW)}
    selects = {one.view: one.sql for one in catalog.queries() if one.view not in views and not one.generates}
    return changed + [
        name
        for name, sql in selects.items()
        if _planned(name, parse_one(sql), catalog) != _planned(name, parse_one(sql), then)
    ]


def readers_by_watermark(catalog: Catalog, view: Relation) -> list[str]:
    """The views whose time is the watermark that a view tells its readers: it has passed the rows that are there."""
    found = []
    for user in users_of(catalog, view):
        if (definition := user.materialized_view) is not None:
            scans = scans_of(plan_query(user.name, definition, catalog))
            if any(one.stream.name == view.name and one.watermark and one.watermark.from_heartbeats for one in scans):
                found.append(user.name)
    return found


def _reads_otherwise(user: RelationDefinition, now: Relations, then: Relations, columns: Collection[str]) -> bool:
    match user:
        case CreateView():
            return _planned(user.name, user, now) != _planned(user.name, then.get(user.name).definition, then)
        case CreateIndex():
            return not {*user.index.columns, *user.index.storing} <= set(columns)
        case CreateDictionary():
            return not {column.name for column in user.columns} <= set(columns)
    return False


def _planned(name: str, statement: Statement | RelationDefinition, catalog: Relations) -> object:
    """What a query is made of and gives; why there is none, where it cannot be planned."""
    if not isinstance(statement, CreateView | Select):
        return None
    try:
        plan = plan_query(name, statement, catalog)
    except SqlError as refusal:
        return refusal.what
    return plan.columns, [(fragment.name, fragment.fingerprint) for fragment in plan.fragments]
