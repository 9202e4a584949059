"""The statements of a request, and how they are to be carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from dovetail.runtime.settings import Settings
from dovetail.services.serve.access.authenticator import expect_role
from dovetail.services.serve.access.users import User
from dovetail.services.serve.refusals import JSON, RequestRefused
from dovetail.services.serve.statements.arguments import arguments_of
from dovetail.services.serve.statements.bodies import body_of, expect_plain, media_type_of, members_of, text_of
from dovetail.services.session.statement_table import role_of
from dovetail.sql.syntax.parameters.bound_literals import Arguments
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.statements import Statement, opening_words

TEXTS = ("text/plain", "application/sql", "application/x-www-form-urlencoded")
"""The last is what curl says of a text that is given by --data: it is read as it is."""
_TRUTHS = ("agree", "until_idle", "single")
_MEMBERS = ("sql", *_TRUTHS, "arguments")


@dataclass(frozen=True)
class Script:
    """agree       whether DROP .. CASCADE may drop what it drops
    until_idle  whether a streaming SELECT ends when the input there is has been answered
    single      whether more than one statement is refused: for a text that something was filled into
    arguments   the values of the parameters
    """

    text: str
    agree: bool = False
    until_idle: bool = False
    single: bool = False
    arguments: Arguments | None = None

    def statements(self, user: User) -> list[Statement]:
        """All of them, before the first is run. Raises SqlError, or RequestRefused for what the user may not do."""
        found = parse(self.text, arguments=self.arguments)
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


async def script_of(request: Request, settings: Settings) -> Script:
    """Raises RequestRefused for a body that is none."""
    kind = media_type_of(request, (*TEXTS, JSON))
    body = await body_of(request, settings.serve_body_bytes, settings.serve_body_s)
    script = Script(text_of(body)) if kind in TEXTS else _of_members(members_of(body, _MEMBERS))
    expect_plain(script.text, "sql")
    return script


def _of_members(members: dict[str, Any]) -> Script:
    text = members.get("sql")
    if not isinstance(text, str):
        raise RequestRefused('the member "sql" is no text', where="body", fix='send {"sql": "SHOW VIEWS"}')
    for name in _TRUTHS:
        if not isinstance(members.get(name, False), bool):
            raise RequestRefused(f'the member "{name}" is neither true nor false', where="body", fix="give one of them")
    arguments = arguments_of(members["arguments"]) if "arguments" in members else None
    return Script(text, **{name: members.get(name, False) for name in _TRUTHS}, arguments=arguments)
