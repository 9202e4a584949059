"""``dovetail lsp``: a language server for editors, over standard input and output."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from time import monotonic

from dovetail.changelog.errors import DovetailError, StackError
from dovetail.services.known_stacks import found_settings
from dovetail.services.session import Session
from dovetail.sql.catalog import Relation

_AGAIN_S = 5.0


def serve_editor() -> None:
    """Until the input ends. Raises StackError where the library of the protocol is not installed."""
    if find_spec("pygls") is None:
        raise StackError(
            "the library of the Language Server Protocol is not installed",
            where="dovetail lsp",
            fix="pip install 'dovetail[lsp]'",
        )
    from dovetail.services.lsp.server import SqlServer  # noqa: PLC0415 - the library may not be there

    SqlServer(version("dovetail"), StackRelations()).start_io()


class StackRelations:
    """The relations of the stack that runs, looked at again after a while; None where none does, or none answers."""

    def __init__(self) -> None:
        self._found: Sequence[Relation] | None = None
        self._looked_s = -_AGAIN_S

    def __call__(self) -> Sequence[Relation] | None:
        if monotonic() - self._looked_s >= _AGAIN_S:
            try:
                with Session.open(found_settings()) as session:
                    self._found = session.context.catalog.relations()
            except (DovetailError, OSError):
                self._found = None
            self._looked_s = monotonic()
        return self._found
