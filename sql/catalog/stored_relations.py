"""Relations as rows of the catalog, within a transaction that the caller has begun."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import articled
from dovetail.sql.catalog.metadata_tables import RELATIONS, USES
from dovetail.sql.catalog.records import FormerDefinition, Relation, RelationDefinition, What
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateIndex, CreateStream, CreateView, Index
from dovetail.sql.system_tables import listed_by

_FEW = 12
"""Up to so many names are listed in an error."""


def add(connection: Connection, relation: Relation, used: Iterable[str]) -> None:
    """Adds a relation that uses others, by their own names."""
    connection.execute(
        RELATIONS.insert().values(
            name=relation.name,
            what=relation.what.value,
            ddl=relation.ddl,
            created_ms=relation.created_ms,
            written=relation.written_text or None,
        )
    )
    _add_uses(connection, relation.name, used)


def _add_uses(connection: Connection, name: str, used: Iterable[str]) -> None:
    for one in sorted(set(used)):
        connection.execute(USES.insert().values(name=name, used=one))


def own_names(connection: Connection, written: Iterable[str]) -> tuple[str, ...]:
    """What the relations are called that a statement names in any letter case. Raises UnknownName."""
    return tuple(dict.fromkeys(expect(connection, name).name for name in written))


def names(connection: Connection) -> list[str]:
    return list(connection.execute(sa.select(RELATIONS.c.name)).scalars())


def listed(connection: Connection) -> list[Relation]:
    """All, in order of creation."""
    return [_read(row) for row in connection.execute(sa.select(RELATIONS).order_by(RELATIONS.c.position)).mappings()]


def remove(connection: Connection, name: str) -> None:
    connection.execute(RELATIONS.delete().where(RELATIONS.c.name == name))
    connection.execute(USES.delete().where(USES.c.name == name))


def redefine(connection: Connection, relation: Relation, ddl: str) -> bool:
    """Whether the relation was as it is given."""
    here = RELATIONS.update().where(RELATIONS.c.name == relation.name, RELATIONS.c.ddl == relation.ddl)
    return connection.execute(here.values(ddl=ddl)).rowcount == 1


def replace_query(connection: Connection, name: str, ddl: str, written: str, used: Iterable[str], now_ms: int) -> None:
    """Another definition of a view, that uses other relations; that of before is its former one."""
    values = {"former_ddl": RELATIONS.c.ddl, "altered_ms": now_ms, "ddl": ddl, "written": written or None}
    # MySQL assigns in this order, and would else take the new text for the former one.
    in_order = [(RELATIONS.c[column], value) for column, value in values.items()]
    connection.execute(RELATIONS.update().where(RELATIONS.c.name == name).ordered_values(*in_order))
    connection.execute(USES.delete().where(USES.c.name == name))
    _add_uses(connection, name, used)


def find(connection: Connection, name: str) -> Relation | None:
    row = connection.execute(sa.select(RELATIONS).where(RELATIONS.c.name == name)).mappings().first()
    return None if row is None else _read(row)


def expect(connection: Connection, name: str) -> Relation:
    """The relation that a statement names. Raises UnknownName with the nearest name there is."""
    relation = named(connection, name)
    if relation is None:
        raise unknown(name, names(connection))
    return relation


def named(connection: Connection, name: str) -> Relation | None:
    """The relation that a statement names: ``name``, or the one that differs from it in letter case alone."""
    relation = find(connection, name)
    if relation is None and (alike := meant(name, names(connection))) is not None:
        return find(connection, alike)
    return relation


def meant(name: str, known: Collection[str]) -> str | None:
    """The name of a relation, or the one that differs from it in letter case alone."""
    alike = [name] if name in known else _alike(name, known)
    return alike[0] if len(alike) == 1 else None


def unknown(name: str, known: Collection[str]) -> UnknownName:
    """The error of a name that no relation has, with the nearest one."""
    listing = "SHOW STREAMS and SHOW VIEWS list what there is" if len(known) > _FEW else ""
    return UnknownName(f'there is no stream or view "{name}"', fix=listed_by(name) or suggestion(name, known, listing))


_LISTINGS = {
    What.STREAM: "SHOW STREAMS",
    What.VIEW: "SHOW VIEWS",
    What.DICTIONARY: "SHOW DICTIONARIES",
    What.INDEX: "SHOW INDEXES",
    What.FUNCTION: "SHOW FUNCTIONS",
}


def no_such(connection: Connection, name: str, what: What) -> UnknownName:
    """The error of a name that nothing has, where one of a kind is meant."""
    known = connection.execute(sa.select(RELATIONS.c.name).where(RELATIONS.c.what == what.value)).scalars().all()
    listing = f"{_LISTINGS[what]} lists what there is" if len(known) > _FEW else ""
    return UnknownName(f'there is no {what} "{name}"', fix=suggestion(name, known, listing))


def indexes_of(definition: RelationDefinition, made: Iterable[RelationDefinition]) -> list[Index]:
    """The secondary indexes of a relation: those in its declaration, then those of ``made`` by CREATE INDEX."""
    own = list(definition.indexes) if isinstance(definition, CreateStream) else []
    return own + [one.index for one in made if isinstance(one, CreateIndex)]


def target(definition: RelationDefinition, known: Collection[str]) -> str | None:
    """What a view writes INTO is called among ``known``, which has what it uses; None for other relations."""
    into = definition.into if isinstance(definition, CreateView) else None
    return None if into is None else meant(into, known)


def refuse_alike(connection: Connection, definition: RelationDefinition) -> None:
    """Raises SqlError for a table whose name differs from that of another relation in letter case alone: in the dialect
    of tables they are one name. Topics of streams may differ so.
    """
    if not isinstance(definition, CreateStream) or definition.rules is not Rules.RISINGWAVE:
        return
    others = _alike(definition.name, names(connection))
    if others and definition.name not in others:
        raise SqlError(
            f'the name "{definition.name}" differs from "{others[0]}", which is there, in letter case alone',
            fix="another name; WITH (topic = '..') reads a topic of any name",
        )


def _alike(name: str, known: Iterable[str]) -> list[str]:
    return [one for one in known if one.casefold() == name.casefold()]


def _read(row: RowMapping) -> Relation:
    former = FormerDefinition(row["former_ddl"], row["altered_ms"]) if row["former_ddl"] else None
    return Relation(row["name"], What(row["what"]), row["ddl"], row["created_ms"], row["written"] or "", former)


def used(connection: Connection, name: str) -> list[str]:
    return list(connection.execute(sa.select(USES.c.used).where(USES.c.name == name).order_by(USES.c.used)).scalars())


def users(connection: Connection, name: str) -> list[Relation]:
    joined = sa.select(RELATIONS).join(USES, USES.c.name == RELATIONS.c.name)
    rows = connection.execute(joined.where(USES.c.used == name).order_by(RELATIONS.c.position)).mappings()
    return [_read(row) for row in rows]


def with_users(connection: Connection, target: Relation) -> list[Relation]:
    """``target`` and all that use it, directly or not, each after its own users."""
    found: dict[str, Relation] = {}

    def visit(relation: Relation) -> None:
        for user in users(connection, relation.name):
            if user.name not in found:
                visit(user)
        found[relation.name] = relation

    visit(target)
    return list(found.values())


def refuse_to_give_way(connection: Connection, existing: Relation, definition: RelationDefinition) -> None:
    """Raises where ``existing`` may not be replaced by ``definition``."""
    refuse_taken(existing, definition)
    added = f"ALTER STREAM {existing.name} ADD COLUMN adds a column under them; else " * (existing.what == What.STREAM)
    refuse_while_used(connection, existing, added + "drop {names}, replace it, and create them again")


def refuse_taken(existing: Relation, definition: RelationDefinition) -> None:
    """Raises SqlError where ``definition`` does not say that it replaces ``existing``, or that is of another kind."""
    noun = existing.noun.upper()
    if existing.what != What.of(definition):
        raise SqlError(
            f'"{existing.name}" is {articled(existing.noun)}', fix=f"DROP {noun} {existing.name}, or another name"
        )
    if isinstance(definition, CreateIndex) or not definition.or_replace:
        replacing = "" if isinstance(definition, CreateIndex) else "CREATE OR REPLACE replaces it, "
        raise SqlError(
            f'there is {articled(existing.noun)} "{existing.name}" already',
            fix=f"{replacing}DROP {noun} {existing.name} takes it away, IF NOT EXISTS leaves it as it is",
        )


def refuse_while_used(connection: Connection, relation: Relation, fix: str = "") -> None:
    """Raises where a view uses the relation, with how to go on with their ``{names}``; indexes do not count."""
    views = [user.name for user in users(connection, relation.name) if user.what != What.INDEX]
    if views:
        names, dropped = ", ".join(views), f"DROP {relation.noun.upper()} {relation.name}"
        raise Unsupported(
            f'the {relation.noun} "{relation.name}" is used by {names}',
            fix=(fix or f"drop {{names}} first, or {dropped} CASCADE").format(names=names),
        )
