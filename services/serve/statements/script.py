"""The statements of a request, and how they are to be carried out."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator

from dovetail.services.serve.access.authenticator import expect_role
from dovetail.services.serve.access.users import User
from dovetail.services.serve.refusals import RequestRefused
from dovetail.services.serve.statements.arguments import Written, arguments_of
from dovetail.services.serve.statements.bodies import plain
from dovetail.services.serve.statements.members import Members
from dovetail.services.session.statement_table import role_of
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.statements import Statement, opening_words


class Script(Members):
    sql: Annotated[
        str,
        plain("sql"),
        Field(title="text", description="statements, with ; between them", examples=["SHOW VIEWS"]),
    ]
    agree: bool = Field(default=False, description="DROP .. CASCADE may drop all that it drops")
    until_idle: bool = Field(default=False, description="a streaming SELECT ends when the input there is was answered")
    single: bool = Field(
        default=False, description="more than one statement is refused: for a text that something was filled into"
    )
    arguments: Annotated[
        Any,
        PlainValidator(arguments_of, json_schema_input_type=Written),
        Field(description="the values of ? in their order, or of :name by name"),
    ] = None

    def statements(self, user: User) -> list[Statement]:
        """All of them, before the first is run. Raises SqlError, or RequestRefused for what the user may not do."""
        found = parse(self.sql, arguments=self.arguments)
        if not found:
            raise RequestRefused("there is no statement", where="body", fix="send one: SHOW VIEWS")
        if self.single and len(found) > 1:
            raise RequestRefused(
                f'there are {len(found)} statements, and with "single" one is taken',
                where="body, statement 2",
                fix="send each by itself; or leave out single where all of them are meant",
            )
        for statement in found:
            expect_role(user, role_of(type(statement)), opening_words(statement))
        return found
