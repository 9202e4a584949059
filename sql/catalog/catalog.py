"""The catalog: create, look up, drop; and the state of every query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError

from dovetail.changelog.errors import (
    DovetailError,
    EnvironmentFault,
    ServiceUnavailable,
    SqlError,
    StackError,
    UnknownName,
    Unsupported,
)
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import articled
from dovetail.sql.catalog import (
    leaderships,
    stored_queries,
    stored_relations,
    stored_schemas,
    stored_topics,
    wishes,
    workers,
)
from dovetail.sql.catalog.cycles import refuse_cycle
from dovetail.sql.catalog.like import matches
from dovetail.sql.catalog.metadata_tables import engine_for, identity, make
from dovetail.sql.catalog.records import (
    Actual,
    Desired,
    Leadership,
    Query,
    Relation,
    RelationDefinition,
    What,
    Worker,
)
from dovetail.sql.catalog.wishes import Wishes
from dovetail.sql.stream_settings import kept_text
from dovetail.sql.syntax.statements import CreateFunction, CreateIndex, CreateStream, CreateView, Drop, Index

if TYPE_CHECKING:
    from dovetail.sql.relations import Stream


class Catalog:
    """What exists, for several processes at once: each method is one transaction. Times are given by the caller.

    python_functions  whether functions in Python may be made and called here: they are code of who makes them
    """

    def __init__(self, engine: Engine, *, python_functions: bool = True) -> None:
        self._python_functions = python_functions
        self._engine = engine
        self._writing = engine.execution_options(writes=True)
        self._noting = engine.execution_options(writes=True, durable=False)
        self._wishes = Wishes(engine)

    @staticmethod
    def open(url: str, *, python_functions: bool = True) -> Catalog:
        """The catalog at a SQLAlchemy URL (``sqlite:///file``, ``mysql+pymysql://..``), made if it is not there.

        Raises ServiceUnavailable where the database does not answer, EnvironmentFault where its folder cannot be made,
        StackError where what is there is no catalog that this release knows.
        """
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:"):
            _made_for_its_owner(Path(str(parsed.database)))
        catalog = Catalog(engine_for(parsed), python_functions=python_functions)
        try:
            with catalog._write() as connection:
                make(connection)
        except DovetailError:
            catalog.close()
            raise
        except DatabaseError as error:
            catalog.close()
            raise StackError(
                f"the catalog cannot be read: {error.orig}",
                where=parsed.render_as_string(hide_password=True),
                fix="put a backup in its place, or name another catalog (DOVETAIL_CATALOG_URL)",
            ) from error
        return catalog

    def close(self) -> None:
        self._wishes.close()
        self._engine.dispose()

    # -- relations --

    def create(
        self,
        definition: RelationDefinition,
        *,
        now_ms: int,
        uses: Iterable[str] = (),
        query: Query | None = None,
        upstream: Sequence[Query] = (),
        seen: Sequence[Relation] | None = None,
        written: Stream | None = None,
    ) -> tuple[Relation, Query | None]:
        """Adds a relation and, of a materialized view, the query that fills it, with the fragments ``upstream`` of it.

        ``uses`` names the relations that a view reads and writes; they cannot be dropped before it. With IF NOT EXISTS
        an existing relation is left alone and returned; with OR REPLACE it gives way, unless others use it. Raises
        Unsupported for a view that would be made of its own rows.

        ``written`` is the stream that a materialized view writes, so that who reads it need not plan it.

        ``seen`` is what had the name when the caller looked, at most one: SqlError where it is another one by now.
        """
        if isinstance(definition, CreateFunction):
            self._expect_functions(definition.name)
        text = kept_text(definition) if isinstance(definition, CreateStream) else definition.text
        relation = Relation(definition.name, What.of(definition), text, now_ms, _stored(written))
        named = (definition.stream,) if isinstance(definition, CreateIndex) else tuple(uses)
        with self._wish() as connection:
            stored_relations.refuse_alike(connection, definition)
            existing = stored_relations.find(connection, relation.name)
            if existing is not None and definition.if_not_exists:
                return existing, stored_queries.find(connection, relation.name)
            used = stored_relations.own_names(connection, named)
            if isinstance(definition, CreateView):
                refuse_cycle(connection, definition, used)
            if existing is not None:
                stored_relations.refuse_to_give_way(connection, existing, definition)
            if seen is not None and list(seen) != ([] if existing is None else [existing]):
                raise _changed(relation.name)
            if existing is not None:
                _give_way(connection, existing, now_ms)
            stored_relations.add(connection, relation, used)
            return relation, None if query is None else _added(connection, query, upstream, now_ms)

    def redefine(self, relation: Relation, ddl: str) -> None:
        """Another text for a relation that stays, and for its query. Raises SqlError where it is another one by now."""
        with self._wish() as connection:
            if not stored_relations.redefine(connection, relation, ddl):
                raise _changed(relation.name)
            for query in stored_queries.fragments(connection, relation.name):
                stored_queries.update(connection, query.id, sql=ddl)

    def succeed(self, successor: Query, written: Stream, uses: Iterable[str], *, now_ms: int) -> None:
        """A view gets the query of its successor, with its checkpoint, and the successor that of the view, with which
        it is dropped. ``written`` and ``uses`` as of ``create``. Nothing where that has been done, or the view is gone.
        """
        with self._wish() as connection:
            ahead = stored_queries.find(connection, successor.name)
            relation = stored_relations.find(connection, written.schema.name)
            if ahead is None or ahead.desired is Desired.DROPPED or relation is None:
                return
            view = stored_queries.expect(connection, relation.name)
            used = stored_relations.own_names(connection, uses)
            stored_relations.replace_query(connection, relation.name, ahead.sql, _stored(written), used, now_ms)
            stored_queries.exchange(connection, view, ahead, now_ms)

    def get(self, name: str) -> Relation:
        """Raises UnknownName with the nearest name there is."""
        with self._read() as connection:
            return stored_relations.expect(connection, name)

    def find(self, name: str) -> Relation | None:
        """The relation of just this name, as CREATE asks: streams may differ in letter case alone."""
        with self._read() as connection:
            return stored_relations.find(connection, name)

    def named(self, name: str) -> Relation | None:
        """The relation that a statement means by ``name``, as ``get`` finds it; None where there is none."""
        with self._read() as connection:
            return stored_relations.named(connection, name)

    def relations(self, what: What | None = None, like: str | None = None) -> list[Relation]:
        """In order of creation; ``like`` is a pattern of SHOW .. LIKE (``%`` and ``_``)."""
        with self._read() as connection:
            found = stored_relations.listed(connection)
        return [one for one in found if what in (None, one.what) and (like is None or matches(one.name, like))]

    def users(self, name: str) -> list[Relation]:
        """The relations that use ``name`` directly: views and indexes."""
        with self._read() as connection:
            return stored_relations.users(connection, name)

    def used(self, name: str) -> list[str]:
        """The names that a relation uses directly."""
        with self._read() as connection:
            return stored_relations.used(connection, name)

    def indexes(self, stream: str) -> list[Index]:
        """The secondary indexes of a stream or view: those in its declaration, then those made by CREATE INDEX."""
        relation = self.get(stream)
        return stored_relations.indexes_of(relation.definition, (user.definition for user in self.users(relation.name)))

    def function(self, name: str) -> CreateFunction | None:
        """The function of this name, in lower case, that a user has made. Raises Unsupported where none is called."""
        relation = self.find(name)
        definition = None if relation is None or relation.what is not What.FUNCTION else relation.definition
        if not isinstance(definition, CreateFunction):
            return None
        self._expect_functions(name)
        return definition

    def _expect_functions(self, name: str) -> None:
        if not self._python_functions:
            raise Unsupported(
                f'"{name}" is a function in Python, and this process runs none',
                where="DOVETAIL_PYTHON_FUNCTIONS is off",
                fix="set it to on, here and where queries run: anyone who may CREATE FUNCTION can run code there",
            )

    def expect_free(self, definition: RelationDefinition) -> None:
        """Raises SqlError where ``create`` would refuse the name, or what has it now may not be replaced."""
        with self._read() as connection:
            stored_relations.refuse_alike(connection, definition)
            existing = stored_relations.find(connection, definition.name)
            if existing is not None and not definition.if_not_exists:
                stored_relations.refuse_to_give_way(connection, existing, definition)

    def expect_acyclic(self, view: CreateView, uses: Iterable[str]) -> None:
        """Raises Unsupported where ``create`` would: a view that would be made of its own rows."""
        with self._read() as connection:
            refuse_cycle(connection, view, stored_relations.own_names(connection, uses))

    def going(self, statement: Drop) -> list[Relation]:
        """What ``drop`` would drop now. Raises as that does."""
        with self._read() as connection:
            return _going(connection, statement)

    def drop(self, statement: Drop, *, now_ms: int, agreed: Collection[str] | None = None) -> list[Relation]:
        """Drops a relation and returns what went, users first; a view's query is wanted DROPPED from now on.

        Its indexes go with a stream; other users are refused, unless CASCADE takes them along: of these no others than
        ``agreed``. WITH DATA is refused while another relation has the same topic.
        """
        with self._wish() as connection:
            dropped = _going(connection, statement)
            new = [relation.name for relation in dropped if agreed is not None and relation.name not in agreed]
            if new:
                raise SqlError(f"another process has just created {', '.join(new)}", fix="run the statement again")
            for relation in dropped:
                _remove(connection, relation.name, now_ms)
            return dropped

    def with_topic(self, topic: str) -> list[Relation]:
        """The relations whose rows are the records of ``topic``."""
        with self._read() as connection:
            return stored_topics.relations_with(connection, [topic])

    # -- schemas --

    def schemas(self) -> list[str]:
        """Those that relations are in, and those that users have made."""
        with self._read() as connection:
            return stored_schemas.listed(connection)

    def inside(self, schema: str) -> list[Relation]:
        """The relations in a schema, in order of creation."""
        with self._read() as connection:
            return stored_schemas.inside(connection, schema)

    def create_schema(self, name: str) -> bool:
        """False where there is one of this name."""
        with self._wish() as connection:
            new = name not in stored_schemas.listed(connection)
            if new:
                stored_schemas.add(connection, name)
            return new

    def drop_schema(self, name: str) -> None:
        """Raises UnknownName where there is none of this name, SqlError where relations are in it."""
        with self._wish() as connection:
            known = stored_schemas.listed(connection)
            if name not in known:
                raise UnknownName(f'there is no schema "{name}"', where="DROP SCHEMA", fix=suggestion(name, known))
            if inside := stored_schemas.inside(connection, name):
                what = f'the schema "{name}" has {", ".join(one.name for one in inside)}'
                raise SqlError(what, where="DROP SCHEMA", fix=f"DROP SCHEMA {name} CASCADE")
            stored_schemas.remove(connection, name)

    # -- topics --

    def topic_made(self, topic_id: str, name: str, *, now_ms: int) -> None:
        """Dovetail has made a topic: it may be deleted by whoever says so."""
        with self._write() as connection:
            stored_topics.add(connection, topic_id, name, now_ms)

    def made_topics(self, topic_ids: Collection[str]) -> set[str]:
        """Those of ``topic_ids`` that Dovetail has made."""
        with self._read() as connection:
            return stored_topics.made(connection, topic_ids)

    def forget_topics(self, topic_ids: Collection[str]) -> None:
        """They have been deleted."""
        with self._write() as connection:
            stored_topics.remove(connection, topic_ids)

    # -- queries --

    def add_query(self, query: Query, *, now_ms: int, upstream: Sequence[Query] = ()) -> Query:
        """A query that belongs to no view. Refused while another of this name lives."""
        with self._wish() as connection:
            return _added(connection, query, upstream, now_ms)

    def query(self, name: str) -> Query:
        """The living query of this name; UnknownName where there is none."""
        with self._read() as connection:
            return stored_queries.expect(connection, name)

    def fragments(self, name: str) -> list[Query]:
        """The living queries that a view or SELECT is cut into, upstream first: the last one has its name."""
        with self._read() as connection:
            return stored_queries.fragments(connection, stored_queries.expect(connection, name).view)

    def queries(self, *, dropped: bool = False) -> list[Query]:
        """The living queries in order of creation; with ``dropped`` those to be cleaned away as well."""
        with self._read() as connection:
            found = stored_queries.listed(connection)
        return [query for query in found if dropped or query.desired != Desired.DROPPED]

    def want(self, name: str, desired: Desired, *, now_ms: int) -> Query:
        """The user's wish: run, pause or drop the living query of this name, all its fragments."""
        with self._wish() as connection:
            found = stored_queries.fragments(connection, stored_queries.expect(connection, name).view)
            for query in found:
                stored_queries.update(connection, query.id, desired=desired.value, updated_ms=now_ms)
            return replace(found[-1], desired=desired, updated_ms=now_ms)

    def renew(self, name: str, lease_ms: int) -> None:
        """Somebody answers for the living query of this name until ``lease_ms``; nothing where there is none."""
        with self._note() as connection:
            found = stored_queries.find(connection, name)
            for query in stored_queries.fragments(connection, found.view) if found is not None else ():
                stored_queries.update(connection, query.id, lease_ms=lease_ms)

    def report(
        self,
        query_id: int,
        *,
        now_ms: int,
        actual: Actual | None = None,
        error: str | None = None,
        progress: Mapping[str, Any] | None = None,
        restarts: int | None = None,
        next_try_ms: int | None = None,
    ) -> None:
        """What the runner has to say of a query; what is left out stays as it is."""
        said: dict[str, Any] = {"updated_ms": now_ms}
        if restarts is not None:
            said["restarts"] = restarts
        if next_try_ms is not None:
            said["next_try_ms"] = next_try_ms
        if actual is not None:
            said["actual"] = actual.value
        if error is not None:
            said["error"] = error
        if progress is not None:
            said["progress"] = dict(progress)
        with self._note() as connection:
            stored_queries.update(connection, query_id, **said)

    def set_checkpoint(self, query_id: int, checkpoint: str) -> None:
        with self._write() as connection:
            stored_queries.update(connection, query_id, checkpoint=checkpoint)

    def switch_checkpoint(self, query_id: int, before: str, after: str) -> bool:
        """Another checkpoint instead of ``before``; whether that was the one."""
        with self._write() as connection:
            return stored_queries.switch(connection, query_id, before, after)

    def switch_checkpoints(self, switches: Iterable[tuple[int, str, str]]) -> bool:
        """As ``switch_checkpoint``, for several queries: of all (query, before, after), or of none."""
        try:
            with self._write() as connection:
                for query_id, before, after in switches:
                    if not stored_queries.switch(connection, query_id, before, after):
                        raise _NotTheOne
        except _NotTheOne:
            return False
        return True

    def claim_checkpoint(self, query_id: int, checkpoint: str) -> str:
        """Set the checkpoint unless there is one already; the one that stands. Several may try at once."""
        with self._write() as connection:
            return stored_queries.claim(connection, query_id, checkpoint)

    def forget_query(self, query_id: int) -> None:
        """Removes a dropped query, once the runner has cleaned up after it."""
        with self._write() as connection:
            stored_queries.remove(connection, query_id)

    # -- workers --

    def worker_seen(self, worker: Worker, now_ms: int) -> None:
        """A sign of life, with what the worker has to say of itself."""
        with self._note() as connection:
            workers.put(connection, replace(worker, seen_ms=now_ms))

    def workers(self, since_ms: int) -> list[Worker]:
        """Those that gave a sign of life at ``since_ms`` or later, by id."""
        with self._read() as connection:
            return workers.seen(connection, since_ms)

    def note_runner_gone(self, engine: str) -> None:
        """Nobody runs the queries of an engine: those that were said to run are RECOVERING until one says so again."""
        with self._note() as connection:
            stored_queries.note_runner_gone(connection, engine)

    def worker_gone(self, worker_id: str) -> None:
        with self._write() as connection:
            workers.remove(connection, worker_id)

    def identity(self, wanted: str) -> str:
        """What tells this catalog from all others: what it was given first, which is ``wanted`` where it has none."""
        with self._write() as connection:
            return identity(connection, wanted)

    # -- leaders --

    def leadership(self, name: str) -> Leadership | None:
        """As it stands, be its time over or not."""
        with self._read() as connection:
            return leaderships.find(connection, name)

    def take_leadership(self, wanted: Leadership, *, now_ms: int, after: int | None = None) -> Leadership:
        """The lease that stands then; ``after`` is the epoch of a holder that is known to be gone."""
        with self._write() as connection:
            return leaderships.take(connection, wanted, now_ms, after)

    def renew_leadership(self, held: Leadership, until_ms: int) -> bool:
        """Whether it is still held. To give it back is to renew it until a time that has passed."""
        with self._note() as connection:
            return leaderships.renew(connection, held, until_ms)

    # -- transactions --

    def wishes(self) -> int | None:
        """Another number each time that something else is wanted of a query; None where only a look can tell."""
        return self._wishes.count()

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with _answering(self._engine), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with _answering(self._engine), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def _note(self) -> Iterator[Connection]:
        """A ``_write`` of what is said again before long: a loss of power may take it back."""
        with _answering(self._engine), self._noting.begin() as connection:
            yield connection

    @contextmanager
    def _wish(self) -> Iterator[Connection]:
        """A ``_write`` after which something else is wanted of a query."""
        with self._write() as connection:
            yield connection
            wishes.add(connection)


def _stored(written: Stream | None) -> str:
    if written is None:
        return ""
    from dovetail.sql.catalog.written_streams import as_text  # noqa: PLC0415 - few statements make a view

    return as_text(written)


class _NotTheOne(Exception):
    """A query has another checkpoint than was thought: the transaction is taken back."""


@contextmanager
def _answering(engine: Engine) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        # SQLite has one writer at a time; elsewhere two may create the same name at once.
        raise SqlError("another process has just created the same name", fix="run the statement again") from error
    except OperationalError as error:
        raise ServiceUnavailable(
            f"the catalog does not answer: {error.orig}",
            where=engine.url.render_as_string(hide_password=True),
            fix="see that its database runs, that the disk has room, and that the file can be written",
        ) from error


def _going(connection: Connection, statement: Drop) -> list[Relation]:
    if statement.if_exists and stored_relations.named(connection, statement.name) is None:
        return []
    target = stored_relations.named(connection, statement.name)
    if target is None:
        raise stored_relations.no_such(connection, statement.name, What(statement.what))
    noun = statement.noun or statement.what
    if target.what != statement.what or (statement.noun and not target.is_called(noun)):
        fix = f"DROP {target.noun.upper()} {target.name}"
        raise SqlError(f'"{target.name}" is {articled(target.noun)}, not {articled(noun)}', fix=fix)
    if not statement.cascade:
        stored_relations.refuse_while_used(connection, target)
    going = stored_relations.with_users(connection, target)
    if statement.with_data:
        stored_topics.refuse_while_shared(connection, going)
    return going


def _made_for_its_owner(file: Path) -> None:
    """Statements may hold passwords. SQLite gives the files beside it the mode of this one."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(0o600)
    except OSError as error:
        raise EnvironmentFault(
            f"the catalog cannot be written to: {error.strerror}",
            where=str(error.filename),
            fix="make it writable; or set DOVETAIL_DATA_DIR or DOVETAIL_CATALOG_URL to a place that is",
        ) from error


def _changed(name: str) -> SqlError:
    return SqlError(f'another process has just changed "{name}"', fix="look at it, and run the statement again")


def _give_way(connection: Connection, existing: Relation, now_ms: int) -> None:
    """Removes ``existing`` and its indexes for its replacement; raises while somebody is still making its query."""
    if any(query.unmade for query in stored_queries.fragments(connection, existing.name)):
        raise SqlError(
            f'another process is just creating the {existing.noun} "{existing.name}"',
            fix=f"wait until it runs; where that process has gone, RESUME {existing.name} or drop it",
        )
    for relation in stored_relations.with_users(connection, existing):
        _remove(connection, relation.name, now_ms)


def _remove(connection: Connection, name: str, now_ms: int) -> None:
    stored_relations.remove(connection, name)
    for query in stored_queries.fragments(connection, name):
        stored_queries.update(connection, query.id, desired=Desired.DROPPED.value, updated_ms=now_ms)


def _added(connection: Connection, query: Query, upstream: Sequence[Query], now_ms: int) -> Query:
    for fragment in upstream:
        stored_queries.add(connection, fragment, now_ms)
    return stored_queries.add(connection, query, now_ms)
