"""``dovetail sql``: a console with history, completion and statements over several lines."""

from __future__ import annotations

from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from dovetail.changelog.errors import DovetailError, SqlError
from dovetail.changelog.suggest import choice
from dovetail.runtime.environment.user_state import user_state
from dovetail.services.cli.failures import show_error
from dovetail.services.cli.manual import show_manual
from dovetail.services.cli.row_format import Mode
from dovetail.services.cli.run import execute
from dovetail.services.cli.shell.backslash import STATEMENTS, is_backslash, refuse_backslash
from dovetail.services.cli.show import Screen
from dovetail.services.completion import NameCompleter
from dovetail.services.session import Session
from dovetail.sql.syntax.parse import complete, parse

_LEAVE = ("\\q", "quit", "exit")
_HELP_WORDS = ("help", "\\h", "\\?")
_MODE = "\\mode"
_MODES = {
    Mode.CHANGELOG: "changelog: each change of a SELECT or PRINT, in its order",
    Mode.TABLE: "table: the current rows of a SELECT or PRINT, in place",
}
_HELP = """\
A statement ends with ; and may have several lines. Tab completes, the up key goes back, Ctrl-R searches.
  CREATE STREAM s(..) | MUTABLE STREAM s(..) PRIMARY KEY (..) | TABLE t(..) | SOURCE s(..)
  ALTER STREAM s ADD COLUMN c int64 DEFAULT 0 | DROP COLUMN c
  CREATE MATERIALIZED VIEW v [INTO s] AS SELECT ..    a query that runs until it is dropped
  SELECT .. FROM a JOIN b ON ..                       its changelog as it comes; Ctrl-C ends it
  SELECT .. FROM table(a)                             the content now
  CREATE DICTIONARY d (..) PRIMARY KEY k SOURCE(..) LAYOUT(..), then JOIN d ON .. SETTINGS join_algorithm = 'direct'
  CREATE FUNCTION f(x int) RETURNS int LANGUAGE python AS $$ def f(x): .. $$    of Arrow arrays; DROP FUNCTION f
  SYSTEM RELOAD DICTIONARY d | DICTIONARIES           all workers ask the source again
  INSERT INTO s VALUES (..) | UPDATE s SET .. | DELETE FROM s WHERE ..
  SHOW STREAMS | VIEWS | DICTIONARIES | FUNCTIONS | QUERIES | TOPICS | SETTINGS      DESCRIBE s, SHOW CREATE s
  PRINT topic [FROM BEGINNING] [LIMIT n]              the records of any topic, as they come
  SHOW DEAD LETTERS [FROM v] [LIKE '..']              records that could not be used: how many, and why
  SELECT .. FROM table(v.dead_letter)                 each of them: its bytes, the reason, where it came from
  REPLAY v.dead_letter [LIKE '..'] [DRY RUN]          put them back to where they came from, each once
  DROP STREAM s [CASCADE] [WITH DATA]                 without WITH DATA the records stay in their topic
  EXPLAIN SELECT .. | EXPLAIN v                       the plan, nothing is run
  EXPLAIN ANALYZE v [FORMAT json | mermaid]           the plan of a running view: rows, state, time of each node
  SHOW STATE OF v                                     what it holds: rows, bytes, keys, and those of most rows
  WHY [NOT] v [SINCE '-2h'] WHERE k = 5               the records behind rows of a view; why there are none
  WAIT FOR v [TO INCLUDE s[0]@123] [TIMEOUT 30]       until v has answered that record, or all that there is
  PAUSE v | RESUME v | TERMINATE v
  BACKUP VIEW v TO 'folder' | RESTORE VIEW v FROM 'folder'
  \\mode table | changelog         what a SELECT that goes on and PRINT show: the current rows in place, or each change
  help asof | help late rows       a page of the documentation; the sections whose headings have the words
  \\d lists what there is, \\d s describes it, \\df functions, \\dt topics, \\dv views; \\q or Ctrl-D leaves"""


class Console:
    """Reads statements until the user leaves; an error ends the statement, not the console."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen

    def run(self) -> None:
        prompt = self._prompt()
        self._screen.note(f"Kafka at {self._session.context.brokers}; help; shows the statements, \\q leaves")
        while True:
            try:
                text = prompt.prompt("dovetail> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if _command(text) in _LEAVE:
                return
            self._execute(text)

    def _execute(self, text: str) -> None:
        if _command(text) in _HELP_WORDS:
            self._screen.line(_HELP)
            return
        first, _, words = _command(text).partition(" ")
        if first in _HELP_WORDS:
            self._show_manual(words)
            return
        if (wanted := mode_of(text)) is not None:
            self._set_mode(wanted)
            return
        try:
            meant = spelled_out(text)
            refuse_backslash(meant)
            for statement in parse(meant):
                execute(self._session, self._screen, statement)
        except DovetailError as error:
            show_error(self._screen, error)
        except KeyboardInterrupt:
            self._screen.note("cancelled")

    def _show_manual(self, words: str) -> None:
        try:
            show_manual(self._screen, words.strip())
        except DovetailError as error:
            show_error(self._screen, error)

    def _set_mode(self, wanted: str) -> None:
        """``wanted``: '' asks which it is."""
        if wanted in list(Mode):
            self._screen.mode = Mode(wanted)
        elif wanted:
            show_error(self._screen, SqlError(f'there is no mode "{wanted}"', where=_MODE, fix=choice(wanted, Mode)))
            return
        self._screen.note(_MODES[self._screen.mode])

    def _prompt(self) -> PromptSession[str]:
        return PromptSession(
            history=FileHistory(str(_history_file())),
            auto_suggest=AutoSuggestFromHistory(),
            completer=ThreadedCompleter(NameCompleter(self._session.context.catalog)),
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation="       .. ",
        )


def _bindings() -> KeyBindings:
    """Enter runs a statement that is complete, and begins a new line in one that is not."""
    bindings = KeyBindings()

    @Condition
    def finished() -> bool:
        return is_finished(get_app().current_buffer.document)

    @bindings.add("enter", filter=finished)
    def run_statement(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def is_finished(document: Document) -> bool:
    """Whether Enter at this place runs the text: it ends with ``;``, is a command of the console, or is blank. A word
    with a backslash that there is none of is one: else the console would wait for a ``;`` forever.
    """
    if document.text_after_cursor.strip():
        return False
    command = _command(document.text)
    if complete(document.text) or command in ("", *_LEAVE) or command.partition(" ")[0] in _HELP_WORDS:
        return True
    return is_backslash(document.text)


def mode_of(text: str) -> str | None:
    """The word behind ``\\mode``, '' if there is none; None where this is something else."""
    word, _, wanted = _words(text).partition(" ")
    return wanted.lower() if word.lower() == _MODE else None


def spelled_out(text: str) -> str:
    """``\\d``, ``\\d s`` and their kin as statements; other text as it is."""
    word, _, name = _words(text).partition(" ")
    if name and word.lower() == "\\d":
        return f"DESCRIBE {name}"
    return "; ".join(STATEMENTS.get(word.lower(), ())) if not name and word.lower() in STATEMENTS else text


def _words(text: str) -> str:
    return " ".join(text.strip().rstrip(";").split())


def _command(text: str) -> str:
    return text.strip().rstrip(";").strip().lower()


def _history_file() -> Path:
    folder = user_state()
    folder.mkdir(parents=True, exist_ok=True)
    history = folder / "history"
    # A statement may hold a password, and is kept as it was typed.
    history.touch(mode=0o600)
    return history
