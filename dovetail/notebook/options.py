"""What the lines of the magics say."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from IPython.core.magic_arguments import MagicArgumentParser

from dovetail.changelog.errors import SqlError


def settings_of(line: str) -> dict[str, object]:
    """``brokers=kafka:9092 data_dir='/var/lib/a folder'``. Raises SqlError for what is no setting."""
    given: dict[str, object] = {}
    for word in words_of(line):
        name, equals, value = word.partition("=")
        if not equals:
            raise SqlError(
                f'"{word}" is no setting with a value',
                where="%dovetail",
                fix="write name=value; SQL goes into a cell that begins with %%dovetail",
            )
        given[name] = value
    return given


def words_of(line: str) -> Sequence[str]:
    try:
        return shlex.split(line)
    except ValueError as fault:
        raise SqlError(f"{str(fault).lower()}: {line}", where="the line of the magic", fix="close the quote") from None


def cell_options() -> MagicArgumentParser:
    parser = _parser("%%dovetail", "Run the SQL statements of the cell, and show what each of them gives.")
    parser.add_argument("--into", metavar="NAME", help="a variable that takes the answer of the last statement")
    return parser


def changes_options() -> MagicArgumentParser:
    parser = _parser("%dovetail_changes", "Show what is written to a stream or a view, as it comes.")
    parser.add_argument("name", help="a stream, a view, or any topic")
    parser.add_argument("--from-beginning", "-b", action="store_true", help="all records, not only those to come")
    parser.add_argument("--limit", "-n", type=int, help="end after so many rows")
    return parser


def _parser(magic: str, description: str) -> MagicArgumentParser:
    parser = MagicArgumentParser(magic, description=description)
    parser.add_argument("--rows", type=int, default=50, help="the most rows that are shown at once; 50")
    parser.add_argument("--until-idle", action="store_true", help="end where the input that there is now is answered")
    return parser
