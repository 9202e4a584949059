"""Whether a query is bounded: all that it reads is ``table(x)``, the past of a topic, a dictionary, a relation of the
system, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dovetail.changelog.errors import UnknownName
from dovetail.sql.bind.clauses import moment_of
from dovetail.sql.bind.written.qualifiers import is_cte
from dovetail.sql.relations import Relations
from dovetail.sql.syntax.calls import CONTENTS, WINDOWS, function_name
from dovetail.sql.syntax.set_functions import set_function
from dovetail.sql.syntax.statements import CreateDictionary, CreateView
from dovetail.sql.system_tables import DATABASE


def is_static(query: exp.Query, ctes: Mapping[str, exp.Query], catalog: Relations) -> bool:
    """``ctes``: the queries that surround it, by name."""
    own = {cte.alias for cte in query.ctes}
    tables = [
        table
        for table in query.find_all(exp.Table)
        if isinstance(table.this, exp.Anonymous) or not (is_cte(table, own) or isinstance(table.this, exp.Values))
    ]
    return all(_is_static(table, ctes, catalog) for table in tables)


def _is_static(table: exp.Table, ctes: Mapping[str, exp.Query], catalog: Relations) -> bool:
    if isinstance(table.this, exp.Anonymous):
        # What a function of several rows gives hangs on its arguments, and on the rows of other tables.
        return _reads_content(table.this) or set_function(table.this) is not None
    if table.db == DATABASE or moment_of(table) is not None:
        return True
    if is_cte(table, ctes):
        return is_static(ctes[table.name], {}, catalog)
    return is_dictionary(table.name, catalog) or _names_static_view(table.name, catalog)


def _names_static_view(name: str, catalog: Relations) -> bool:
    """Whether the name stands for a query that is bounded itself."""
    try:
        definition = catalog.get(name).definition
    except UnknownName:
        return False
    if not isinstance(definition, CreateView) or definition.materialized:
        return False
    return is_static(definition.query, {}, catalog)


def _reads_content(call: exp.Expr) -> bool:
    """``table(x)``, or windows or the changelog of it, or ``changes(x, ..)``."""
    name = function_name(call)
    of_another = name in WINDOWS or name == "changelog"
    return name in CONTENTS or (of_another and bool(call.expressions) and _reads_content(call.expressions[0]))


def is_dictionary(name: str, catalog: Relations) -> bool:
    """Whether the relation is a dictionary or an external table: of its changes nothing is known."""
    try:
        return isinstance(catalog.get(name).definition, CreateDictionary)
    except UnknownName:
        return False
