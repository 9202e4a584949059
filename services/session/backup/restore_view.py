"""RESTORE VIEW: the entries and the checkpoints of a backup, put back; the runner does the rest."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

from dovetail.changelog.errors import CheckpointMismatch, SqlError, UnknownName
from dovetail.changelog.wording import articled
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.runtime.storage.places import folder_name
from dovetail.services.session.backup.backup_folder import (
    Backup,
    SavedQuery,
    SavedRelation,
    backup_place,
    checkpoint_in,
    put_checkpoint,
    read_backup,
)
from dovetail.services.session.backup.broker_position import committed_now, is_lost, origin_of
from dovetail.services.session.context import Context
from dovetail.services.session.queries import await_running, expect_runner
from dovetail.services.session.result import Done
from dovetail.sql.catalog import Desired, Query, Relation, What
from dovetail.sql.catalog.records import RelationDefinition
from dovetail.sql.engines import Engine
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView, RestoreView


def restore_view(context: Context, statement: RestoreView) -> Done:
    """The view goes on from the backup: what it has written since, it reads again and does not write again.

    One that cannot go on stays in the catalog, failed, with the reason: to take it away would make the broker forget
    how far it had come.
    """
    place = backup_place(context.settings, statement.path, "RESTORE VIEW")
    backup = read_backup(place)
    if backup.view != statement.name:
        raise SqlError(
            f'it is a backup of "{backup.view}"', where=str(place), fix=f"RESTORE VIEW {backup.view} FROM '..'"
        )
    _expect_room(context, backup)
    expect_runner(context, {query.engine for query in backup.queries})
    for query in backup.queries:
        _expect_known(context, place, query)
    checkpoints = {query.name: _put_back(context, place, query) for query in backup.queries}
    for relation in backup.relations[:-1]:
        if context.catalog.find(relation.name) is None:
            context.catalog.create(_definition(relation), now_ms=context.now_ms, uses=relation.uses)
    *upstream, last = (_entry(backup, saved, checkpoints[saved.name]) for saved in backup.queries)
    view = backup.relations[-1]
    definition = _definition(view)
    assert isinstance(definition, CreateView)
    context.catalog.create(
        definition,
        now_ms=context.now_ms,
        uses=view.uses,
        query=last,
        upstream=upstream,
        written=plan_query(view.name, definition, context.catalog).stream(),
    )
    context.catalog.want(backup.view, Desired.RUNNING, now_ms=context.now_ms)
    await_running(context, backup.view)
    return Done(f"restored materialized view {backup.view}, running, topic {last.topic}")


def _expect_room(context: Context, backup: Backup) -> None:
    """Raises where something else has a name of the backup, or what the view reads is not there."""
    for relation in backup.relations:
        existing = context.catalog.find(relation.name)
        if relation.masked and existing is None:
            raise SqlError(
                f'"{relation.name}" was saved without its password',
                where="RESTORE VIEW",
                fix="create it first, with its password, as backup.json defines it; PASSWORD ENV 'NAME' is saved",
            )
        if existing is not None and not _stands_for(existing, relation, backup):
            raise SqlError(
                f'there is {articled(existing.noun)} "{relation.name}" already',
                where="RESTORE VIEW",
                fix=f"restore in an empty catalog; SHOW CREATE {relation.name} shows what is there",
            )
    for name in backup.expected:
        if context.catalog.find(name) is None:
            raise UnknownName(
                f'"{backup.view}" reads the view "{name}", which is not there',
                fix=f"RESTORE VIEW {name} FROM '..' first",
            )


def _stands_for(existing: Relation, saved: SavedRelation, backup: Backup) -> bool:
    """A definition that was saved without its password says it in some other way by now."""
    if saved.masked:
        return existing.what in (What.DICTIONARY, What.STREAM)
    return saved.name != backup.view and existing.ddl == saved.ddl


def _expect_known(context: Context, place: Path, query: SavedQuery) -> None:
    """Raises CheckpointMismatch where the broker has forgotten the query.

    It was dropped, or has not run for longer than the broker keeps offsets.
    """
    kept = LocalFolder(checkpoint_in(place, query.name))
    identity = origin_of(query.engine, query.checkpoint, kept).identity
    if is_lost(query.committed, committed_now(context.brokers, identity, query.committed)):
        raise CheckpointMismatch(
            f'the backup cannot be continued: "{query.name}" was dropped since, or was away for longer than the broker'
            " keeps offsets, and a backup undoes neither",
            where=f"consumer group {identity}",
            fix="create the view again; WITH DATA at the end of the statement begins with an empty topic",
        )


def _put_back(context: Context, place: Path, query: SavedQuery) -> str:
    """The checkpoint of a fragment, as the catalog names it."""
    if query.engine == Engine.FAUST:
        return query.checkpoint
    checkpoints = context.place(context.settings.checkpoints)
    target = checkpoints.inside(f"restored-{folder_name(query.name)}-{uuid.uuid4().hex[:8]}")
    put_checkpoint(place, query.name, target)
    return target.location


def _entry(backup: Backup, saved: SavedQuery, checkpoint: str) -> Query:
    query = Query(saved.name, saved.sql, saved.plan, saved.fingerprint, saved.topic, checkpoint, saved.engine)
    return replace(query, view=backup.view, desired=Desired.PAUSED, progress=saved.progress)


def _definition(relation: SavedRelation) -> RelationDefinition:
    statement = parse_one(relation.ddl)
    assert isinstance(statement, RelationDefinition)
    # What gives way here is nothing: the catalog was looked at.
    return replace(statement, or_replace=False) if isinstance(statement, CreateView) else statement
