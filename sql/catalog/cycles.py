"""Views that would feed each other forever: a cycle of relations, each made of the one before it.

A view is made of what it reads, a stream of the views that write INTO it:

    orders ──▶ priced ──▶ (INTO) orders        refused
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from sqlalchemy.engine import Connection

from dovetail.changelog.errors import Unsupported
from dovetail.sql.catalog import stored_relations
from dovetail.sql.catalog.records import Relation
from dovetail.sql.syntax.statements import CreateView


def refuse_cycle(connection: Connection, view: CreateView, uses: Iterable[str]) -> None:
    """Raises Unsupported where ``view``, which reads and writes ``uses``, would be made of its own rows."""
    into = stored_relations.target(view, stored_relations.names(connection))
    ends = {view.name, into}
    for name in dict.fromkeys(uses):
        path = _path(connection, name, ends, frozenset()) if name != into else None
        if path is not None:
            onward = [view.name] if path[0] == view.name or into is None else [view.name, into]
            raise _endless(view, " → ".join([*path, *onward]))


def _path(connection: Connection, name: str, ends: Set[str | None], seen: frozenset[str]) -> tuple[str, ...] | None:
    """From one of ``ends`` to ``name``, in the direction in which rows go; None where there is none."""
    if name in ends:
        return (name,)
    for source in _sources(connection, name):
        if source not in seen and (path := _path(connection, source, ends, seen | {name})) is not None:
            return (*path, name)
    return None


def _sources(connection: Connection, name: str) -> Iterator[str]:
    """What the rows of a relation are made of, one step back."""
    relation = stored_relations.find(connection, name)
    into = None if relation is None else _target(connection, relation)
    yield from (used for used in stored_relations.used(connection, name) if used != into)
    yield from (user.name for user in stored_relations.users(connection, name) if _target(connection, user) == name)


def _target(connection: Connection, relation: Relation) -> str | None:
    return stored_relations.target(relation.definition, stored_relations.used(connection, relation.name))


def _endless(view: CreateView, cycle: str) -> Unsupported:
    return Unsupported(
        f"rows would go round forever: {cycle}",
        where=f'view "{view.name}"',
        fix="read the streams that they are made of" if view.into is None else "INTO another stream",
    )
