"""Schemas of Avro as Apache's own library reads them: stricter than what decodes records."""

from __future__ import annotations

import avro.errors
import avro.name
import avro.schema

from dovetail.broker.registry.avro_text import tree
from dovetail.broker.registry.registered import SchemaNonsense, WholeSchema


def parsed(whole: WholeSchema) -> avro.schema.Schema:
    """Raises SchemaNonsense where it is no schema of Avro."""
    # The names of others' schemas hold what the specification forbids, and every serializer takes them.
    names = avro.name.Names(validate_names=False)
    try:
        for text in whole.referred.values():
            avro.schema.make_avsc_object(tree(text), names, validate_names=False)
        return avro.schema.make_avsc_object(tree(whole.text), names, validate_names=False)
    except (avro.errors.AvroException, ValueError, TypeError, KeyError, AttributeError) as fault:
        raise SchemaNonsense(f"it is no schema of Avro: {fault}") from None
    except RecursionError:
        raise SchemaNonsense("it is nested too deeply") from None
