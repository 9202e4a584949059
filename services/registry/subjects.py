"""What a request does: schemas are registered, found and deleted, by subject and by id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dovetail.broker.registry import avro_text, protobuf_text
from dovetail.broker.registry.registered import Reference, SchemaNonsense, SchemaText, SchemaType, WholeSchema
from dovetail.services.registry.avro_schema import parsed
from dovetail.services.registry.compatibility import Level, objections
from dovetail.services.registry.json_schemas.patterns import expect_schema
from dovetail.services.registry.refusals import RefusalCode, RegistryRefused
from dovetail.services.registry.store import SchemaStore, Version

ANONYMOUS_ADMIN = ""
"""The subject whose level is that of all that have none of their own."""
_DEEPEST = 50
_MOST_REFERRED = 1000
_LARGEST_REFERRED = 16 << 20
"""Characters of all that a schema refers to, at any depth."""


class Subjects:
    """All subjects of one store. Raises RegistryRefused."""

    def __init__(self, store: SchemaStore) -> None:
        self._store = store

    def names(self, *, deleted: bool = False) -> list[str]:
        found = self._store.all_versions()
        return list(dict.fromkeys(one.subject for one in found if deleted or not one.deleted))

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        found = self._store.versions(subject)
        if shown := [one for one in found if deleted or not one.deleted]:
            return shown
        if found:
            raise RegistryRefused(RefusalCode.SUBJECT_DELETED, f"subject {subject!r} was deleted")
        raise RegistryRefused(RefusalCode.SUBJECT_UNKNOWN, f"there is no subject {subject!r}")

    def version(self, subject: str, wanted: str, *, deleted: bool = False) -> Version:
        """``wanted``: a number, or ``latest``."""
        found = self.versions(subject, deleted=deleted)
        if wanted in ("latest", "-1"):
            return found[-1]
        number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else 0
        if number < 1:
            raise RegistryRefused(RefusalCode.INVALID_VERSION, f"{wanted!r} is no version; give a number, or latest")
        for one in found:
            if one.version == number:
                return one
        raise RegistryRefused(RefusalCode.VERSION_UNKNOWN, f"subject {subject!r} has no version {number}")

    def schema(self, schema_id: int) -> SchemaText:
        found = self._store.schema(schema_id)
        if found is None:
            raise RegistryRefused(RefusalCode.SCHEMA_UNKNOWN, f"there is no schema {schema_id}")
        return found

    def having(self, schema_id: int, *, deleted: bool = False) -> list[Version]:
        """The versions that have a schema."""
        self.schema(schema_id)
        found = self._store.all_versions()
        return [one for one in found if one.schema_id == schema_id and (deleted or not one.deleted)]

    def register(self, subject: str, schema: SchemaText) -> Version:
        """The version that has the schema, a new one where there is none."""
        whole, canonical = self._expected(schema)
        with self._store.changing():
            before = self._store.versions(subject)
            shown = [one for one in before if not one.deleted]
            schema_id = self._store.add_schema(canonical)
            for one in shown:
                if one.schema_id == schema_id:
                    return one
            if reasons := self._objections(subject, whole, shown):
                raise RegistryRefused(RefusalCode.INCOMPATIBLE, "; ".join(reasons))
            made = Version(subject, before[-1].version + 1 if before else 1, schema_id, deleted=False)
            self._store.add_version(made)
        return made

    def look_up(self, subject: str, schema: SchemaText, *, deleted: bool = False) -> Version:
        """The version that has the schema."""
        found = self.versions(subject, deleted=deleted)
        _, canonical = self._expected(schema)
        schema_id = self._store.id_of(canonical)
        for one in reversed(found):
            if one.schema_id == schema_id:
                return one
        raise RegistryRefused(RefusalCode.SCHEMA_UNKNOWN, f"subject {subject!r} has no version with this schema")

    def objections(self, subject: str, schema: SchemaText, version: str | None = None) -> list[str]:
        """Why a schema may not follow ``version``, or those that the level of the subject names; none if it may."""
        whole, _ = self._expected(schema)
        if version is None:
            shown = [one for one in self._store.versions(subject) if not one.deleted]
        else:
            shown = [self.version(subject, version)]
        return self._objections(subject, whole, shown)

    def delete(self, subject: str, *, permanent: bool = False) -> list[int]:
        """The versions that are gone: hidden at first, ``permanent`` of those that are hidden."""
        with self._store.changing():
            found = self.versions(subject, deleted=permanent)
            if permanent and not all(one.deleted for one in found):
                raise RegistryRefused(
                    RefusalCode.SUBJECT_NOT_DELETED, f"subject {subject!r} is to be deleted softly first"
                )
            for one in found:
                self._drop(one, permanent=permanent)
            self._store.set_level(subject, None)
        return [one.version for one in found]

    def delete_version(self, subject: str, wanted: str, *, permanent: bool = False) -> int:
        with self._store.changing():
            found = self.version(subject, wanted, deleted=permanent)
            if permanent and not found.deleted:
                what = f"version {found.version} of subject {subject!r} is to be deleted softly first"
                raise RegistryRefused(RefusalCode.VERSION_NOT_DELETED, what)
            self._drop(found, permanent=permanent)
        return found.version

    def referring(self, version: Version) -> list[int]:
        """The schemas that refer to a version."""
        shown = {one.schema_id for one in self._store.all_versions() if not one.deleted}
        return sorted(one for one in shown if _refers(self.schema(one), version))

    def level(self, subject: str = ANONYMOUS_ADMIN, *, inherited: bool = True) -> Level:
        own = self._store.level(subject)
        if own is None and subject != ANONYMOUS_ADMIN and not inherited:
            raise RegistryRefused(RefusalCode.NO_LEVEL_OF_SUBJECT, f"subject {subject!r} has no level of its own")
        return Level(own or self._store.level(ANONYMOUS_ADMIN) or Level.BACKWARD)

    def set_level(self, subject: str, level: str | None) -> Level:
        """``level`` None: that of everybody. The level that counted before is given back by ``level``."""
        if level is not None and level.upper() not in Level.__members__:
            raise RegistryRefused(RefusalCode.INVALID_LEVEL, f"{level!r} is no level; one of: {', '.join(Level)}")
        self._store.set_level(subject, None if level is None else level.upper())
        return self.level(subject)

    def whole(self, schema: SchemaText) -> WholeSchema:
        """With all that it refers to."""
        referred: dict[str, str] = {}
        self._gather(schema.references, referred, 0)
        return WholeSchema(schema.type, schema.text, referred)

    def _gather(self, references: Iterable[Reference], into: dict[str, str], depth: int) -> None:
        if depth > _DEEPEST:
            raise RegistryRefused(RefusalCode.INVALID_SCHEMA, "references are nested too deeply")
        for one in references:
            if one.name not in into:
                found = self.schema(self.version(one.subject, str(one.version), deleted=True).schema_id)
                self._gather(found.references, into, depth + 1)
                into[one.name] = found.text
            if len(into) > _MOST_REFERRED or sum(map(len, into.values())) > _LARGEST_REFERRED:
                raise RegistryRefused(RefusalCode.INVALID_SCHEMA, "references are too many, or too large together")

    def _expected(self, schema: SchemaText) -> tuple[WholeSchema, SchemaText]:
        """The schema, known to be one, and in the form in which it is kept."""
        whole = self.whole(schema)
        try:
            match schema.type:
                case SchemaType.AVRO:
                    avro_text.expect_avro(whole)
                    parsed(whole)
                    canonical = avro_text.canonical(schema.text)
                case SchemaType.JSON:
                    canonical = avro_text.canonical(schema.text)
                    _expect_json_schema(canonical)
                case SchemaType.PROTOBUF:
                    protobuf_text.descriptors(whole)
                    canonical = schema.text
        except SchemaNonsense as nonsense:
            raise RegistryRefused(RefusalCode.INVALID_SCHEMA, str(nonsense)) from None
        return replace(whole, text=canonical), replace(schema, text=canonical)

    def _objections(self, subject: str, whole: WholeSchema, former: list[Version]) -> list[str]:
        return objections(whole, [self.whole(self.schema(one.schema_id)) for one in former], self.level(subject))

    def _drop(self, version: Version, *, permanent: bool) -> None:
        if by := self.referring(version):
            what = f"version {version.version} of subject {version.subject!r} is referred to by schema {by[0]}"
            raise RegistryRefused(RefusalCode.REFERENCED, what)
        if permanent:
            self._store.forget_version(version)
        else:
            self._store.add_version(replace(version, deleted=True))


def _refers(schema: SchemaText, version: Version) -> bool:
    return any((one.subject, one.version) == (version.subject, version.version) for one in schema.references)


def _expect_json_schema(text: str) -> None:
    schema = avro_text.tree(text)
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise SchemaNonsense("it is no JSON Schema: an object or a boolean is expected")
    try:
        expect_schema(schema)
    except RecursionError:
        raise SchemaNonsense("it is nested too deeply") from None
