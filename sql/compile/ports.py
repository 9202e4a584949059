"""The ports that rows enter an operator by."""

from __future__ import annotations

from dataclasses import replace

from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.inputs.renamed_rows import Names
from dovetail.sql.plan.nodes import Keyed, Node
from dovetail.sql.plan.properties import source_of
from dovetail.sql.plan.state.same_rows import same_rows

_INGEST = {
    Kind.APPEND: Ingest.APPEND,
    Kind.UPSERT: Ingest.UPSERT,
    Kind.CHANGELOG_KV: Ingest.CHANGELOG_KV,
    Kind.CHANGELOG: Ingest.CHANGELOG,
}


def port_of(node: Node, keys: tuple[str, ...]) -> Port:
    """The port that the rows of ``node`` enter by."""
    source, watermark, upserts = source_of(node), node.output_watermark, node.upserts
    if source is None:
        # What was late has been left out where the rows came in; what got past that is taken back by its like.
        relaxed = replace(watermark, drops_late=False) if watermark is not None else None
        return Port(node.schema, keys, Ingest.CHANGES, watermark=relaxed)
    identity, kind = _identity(node, keys), source.stream.kind
    if upserts is None and source.trusted and kind != Kind.APPEND and len(identity) == len(node.schema):
        return Port(node.schema, keys, Ingest.CHANGES)
    port = Port(node.schema, keys, _INGEST[kind], watermark=watermark, identity=identity)
    if upserts is None:
        return port
    return replace(port, primary_key=upserts.key, version=upserts.version, first_stays=source.stream.first_stays)


def upserts_port(node: Keyed) -> Port:
    """The port of rows each of which takes the place of the one before it of its key."""
    if node.input.upserts is not None:
        return port_of(node.input, node.primary_key)
    return Port(node.schema, node.primary_key, Ingest.UPSERT, node.primary_key)


def _identity(node: Node, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that tell rows apart: not the time and the place in the topic, which a retraction has of its own."""
    arrivals = node.arrival_columns - set(keys)
    return tuple(name for name in node.schema.names if name not in arrivals)


def budgeted(port: Port, most: int | None) -> Port:
    """A retraction may be of a row that was refused: it is looked for, though the topic is consistent by itself."""
    if most is None:
        return port
    ingest = Ingest.CHANGELOG if port.ingest is Ingest.CHANGES else port.ingest
    return replace(port, ingest=ingest, max_rows_per_key=most)


def renamed(kept: Node, repeated: Node) -> Names:
    """Of each column of an input the one of the input that it is kept with."""
    found = same_rows(kept, repeated)
    if found is None:
        raise InternalError("an input is kept with one that has other rows")
    return tuple(found.names.items())
