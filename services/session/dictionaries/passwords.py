"""Whether the processes that ask the source of a dictionary have the variable of its password."""

from __future__ import annotations

import os
from collections.abc import Iterable

from dovetail.changelog.errors import SourceRefused
from dovetail.dictionaries.definition.definition import Definition
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.live_workers import live_workers
from dovetail.services.session.context import Context
from dovetail.sql.syntax.statements import CreateDictionary


def expect_password_in_workers(context: Context, definition: Definition) -> None:
    """Raises SourceRefused where a worker lacks the variable. One that starts later says so itself, in SHOW QUERIES."""
    variable = definition.source.parameters.get("password_env")
    workers = live_workers(context.catalog, context.now_ms) if variable is not None else []
    if lacking := [worker.id for worker in workers if worker.secrets is not None and variable not in worker.secrets]:
        raise SourceRefused(
            f"the environment variable {variable} with the password is not set in the worker",
            where=f'dictionary "{definition.name}", {", ".join(lacking)}',
            fix=f"export {variable}=.., then run: dovetail up, which starts worker and HTTP server again with it; "
            "a worker that runs elsewhere has to be started again there; PASSWORD FILE 'path' needs no new start",
        )


def expect_passwords_of(context: Context, names: Iterable[str]) -> None:
    """The same of all dictionaries among the relations that a query reads."""
    for name in names:
        relation = context.catalog.find(name)
        if relation is not None and isinstance(relation.definition, CreateDictionary):
            expect_password_in_workers(context, definition_of(relation.definition))


def is_only_in_workers(context: Context, definition: Definition) -> bool:
    """Whether this process lacks the variable, and every worker, of which there is one, has it."""
    variable = definition.source.parameters.get("password_env")
    if variable is None or variable in os.environ:
        return False
    workers = live_workers(context.catalog, context.now_ms)
    return bool(workers) and all(variable in (worker.secrets or ()) for worker in workers)
