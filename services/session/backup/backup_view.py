"""BACKUP VIEW: the view pauses, what it resumes from is copied, it goes on."""

from __future__ import annotations

from dovetail.broker.query_origin import ORIGIN_FILE
from dovetail.changelog.errors import StackError, Unsupported
from dovetail.runtime.storage.backup_note import note_backup
from dovetail.runtime.storage.storage import Storage
from dovetail.services.session.backup.backup_folder import Backup, SavedQuery, SavedRelation, backup_place, write_backup
from dovetail.services.session.backup.broker_position import committed_now, committed_places, origin_of
from dovetail.services.session.context import Context
from dovetail.services.session.queries import pause, resume
from dovetail.services.session.result import Done
from dovetail.sql.catalog import Catalog, Desired, Query, Relation, What
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.statements import BackupView, Pause, Resume


def backup_view(context: Context, statement: BackupView) -> Done:
    """A paused view stays so. A batch that the pause has cut short is part of the backup, and is run again."""
    name = statement.name
    place = backup_place(context.settings, statement.path, "BACKUP VIEW")
    view = context.catalog.get(name)
    if view.materialized_view is None:
        raise Unsupported(f'"{name}" is no materialized view: it has no state', fix="SHOW CREATE shows its definition")
    runs = context.catalog.query(name).desired is Desired.RUNNING
    if runs:
        pause(context, Pause(name))
    try:
        fragments = context.catalog.fragments(name)
        checkpoints = {
            query.name: _checkpoint_of(context, query) for query in fragments if query.engine != Engine.FAUST
        }
        for checkpoint in checkpoints.values():
            note_backup(checkpoint, context.now_ms)
        write_backup(place, _backup(context, view, fragments), checkpoints)
    finally:
        if runs:
            resume(context, Resume(name))
    return Done(f"backed up {name} to {place}")


def _backup(context: Context, view: Relation, fragments: list[Query]) -> Backup:
    needed, expected = needed_by(context.catalog, view)
    relations = tuple(_saved_relation(context, one) for one in needed)
    return Backup(view.name, relations, tuple(_saved(context, query) for query in fragments), expected)


def _saved_relation(context: Context, relation: Relation) -> SavedRelation:
    """A backup travels further than the catalog does: the password of a source is no part of it."""
    uses = tuple(context.catalog.used(relation.name))
    if relation.what not in (What.DICTIONARY, What.STREAM):
        return SavedRelation(relation.name, relation.ddl, uses)
    return SavedRelation(relation.name, relation.shown, uses, masked=relation.shown != relation.ddl)


def _saved(context: Context, query: Query) -> SavedQuery:
    origin = origin_of(query.engine, query.checkpoint, context.place(query.checkpoint))
    return SavedQuery(
        name=query.name,
        sql=query.sql,
        plan=query.plan,
        fingerprint=query.fingerprint,
        topic=query.topic,
        engine=query.engine,
        checkpoint=query.checkpoint if query.engine == Engine.FAUST else "",
        progress=query.progress,
        committed=committed_now(
            context.brokers, origin.identity, committed_places(query.engine, origin, query.progress)
        ),
    )


def _checkpoint_of(context: Context, query: Query) -> Storage:
    place = context.place(query.checkpoint)
    if not query.checkpoint or ORIGIN_FILE not in place.names():
        raise StackError(
            f'the checkpoint of "{query.name}" is not on this machine',
            where=query.checkpoint or "it has not begun",
            fix="run the statement where the Spark runner keeps its checkpoints, as: docker compose exec spark dovetail"
            " sql",
        )
    return place


def needed_by(catalog: Catalog, view: Relation) -> tuple[list[Relation], tuple[str, ...]]:
    """The relations that the view is made of, itself the last, in order of creation; and the materialized views among
    those that it reads, which stand for themselves.
    """
    found, expected = {view.name: view}, list[str]()
    waiting = list(catalog.used(view.name))
    while waiting:
        relation = catalog.get(waiting.pop())
        if relation.name in found or relation.name in expected:
            continue
        if relation.materialized_view is not None:
            expected.append(relation.name)
            continue
        found[relation.name] = relation
        waiting += catalog.used(relation.name)
        found.update({one.name: one for one in catalog.users(relation.name) if one.what is What.INDEX})
    return [one for one in catalog.relations() if one.name in found], tuple(sorted(expected))
