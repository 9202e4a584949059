"""What the statements of a file see: the relations of the stack that runs, and those that earlier statements make.

A relation of the file hides one of the stack: the file may be the one that made it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dovetail.changelog.errors import UnknownName
from dovetail.sql.catalog import Query, Relation, What
from dovetail.sql.catalog.records import RelationDefinition
from dovetail.sql.catalog.stored_relations import indexes_of, meant, refuse_taken, unknown
from dovetail.sql.syntax.statements import CreateFunction, CreateIndex, Index

_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class NameChange:
    """What a statement makes of a name: ``relation``; or, where that is None, something of which no more is known, or,
    ``dropped``, nothing.
    """

    name: str
    relation: Relation | None = None
    dropped: bool = False


class FileCatalog:
    """The relations at one place of a file; ``stack`` is None where none runs.

    to_run  whether the file is to be run in the stack as that is now; else it may be what has made all that is there
    """

    def __init__(self, stack: Sequence[Relation] | None, *, to_run: bool = False) -> None:
        self.missed = False
        """Whether a name was asked for that is neither in the file nor, as none is known, in a stack."""
        self.hidden = False
        """Whether one was whose columns are not known here: its source has them, or its statement is wrong."""
        self._complete = stack is not None
        self._found: dict[str, Relation | None] = {relation.name: relation for relation in stack or ()}
        self._own: set[str] = set(self._found) if to_run else set()
        self._versions: dict[str, int] = {}
        for relation in stack or ():
            self._note(relation.name, relation)

    def apply(self, change: NameChange) -> None:
        if change.dropped:
            self._found.pop(change.name, None)
            self._own.discard(change.name)
        else:
            self._found[change.name] = change.relation
            self._own.add(change.name)
        self._note(change.name, None if change.dropped else change.relation or change)

    def version(self, text: str) -> int:
        """Equal for catalogs that are the same to a statement: in all that its words may name, and what that uses."""
        words = {word.casefold() for word in _WORDS.findall(text)}
        return hash(frozenset((word, self._versions[word]) for word in words & self._versions.keys()))

    @property
    def names(self) -> int:
        """Equal for catalogs of the same names."""
        return hash(frozenset(self._found))

    def _note(self, name: str, what: Relation | NameChange | None) -> None:
        of = what.ddl if isinstance(what, Relation) else f"{what}"
        version = hash((name, of, self.version(of)))
        for word in _WORDS.findall(name):
            self._versions[word.casefold()] = hash((self._versions.get(word.casefold()), version))

    # -- as the planner asks --

    def get(self, name: str) -> Relation:
        """Raises UnknownName with the nearest name."""
        known = meant(name, self._found)
        if known is None:
            self.missed = not self._complete
            raise unknown(name, self._found)
        relation = self._found[known]
        if relation is None:
            self.hidden = True
            raise UnknownName(f'the columns of "{name}" are not known here')
        return relation

    def has(self, name: str) -> bool:
        return meant(name, self._found) is not None

    def indexes(self, stream: str) -> list[Index]:
        relation = self.get(stream)
        made = (one.definition for one in self.relations() if one.what is What.INDEX)
        return indexes_of(relation.definition, (one for one in made if self._is_index_of(one, relation.name)))

    def _is_index_of(self, definition: RelationDefinition, name: str) -> bool:
        return isinstance(definition, CreateIndex) and meant(definition.stream, self._found) == name

    def function(self, name: str) -> CreateFunction | None:
        """Without its body: constants are computed while a query is planned, and nothing of a file is run."""
        relation = self._found.get(name)
        definition = relation.definition if relation is not None and relation.what is What.FUNCTION else None
        return replace(definition, body="") if isinstance(definition, CreateFunction) else None

    # -- as completion asks --

    def relations(self) -> list[Relation]:
        return [relation for relation in self._found.values() if relation is not None]

    def queries(self) -> Sequence[Query]:
        return ()

    # -- as statements that create ask --

    def taken(self, definition: RelationDefinition) -> bool:
        """Whether it is there already, and this statement leaves it. Raises SqlError where it may not be replaced."""
        existing = self._found[definition.name] if definition.name in self._own else None
        if existing is not None and not definition.if_not_exists:
            refuse_taken(existing, definition)
        return existing is not None and definition.if_not_exists
