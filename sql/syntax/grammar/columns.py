"""What stands in the brackets of a CREATE: columns, keys, watermark, indexes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import NoReturn

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.formats.text_forms import TEXT_FORMS
from dovetail.changelog.schema import ARRIVAL, SEQUENCE, TIME, Column, Included, RecordTime
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import type_words
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.grammar.emit import duration_ms
from dovetail.sql.syntax.record_columns import declared_part
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Index
from dovetail.sql.syntax.type_names import type_name
from dovetail.sql.syntax.types import INSTANT, SHOWN_AS_DECLARED, arrow_type, is_type

_CLOCKS = ("NOW", "NOW64", "CURRENT_TIMESTAMP", "PROCTIME")
COLUMN_LIST = "the column list"
"""The clause in which a comma begins the next column."""
_CONSTRAINTS = ("CHECK (", "UNIQUE (", "UNIQUE KEY", "FOREIGN KEY", "EXCLUDE (", "KEY (")
_AFTER_COLUMNS = ("PRIMARY KEY", "SETTINGS", "WITH", "APPEND ONLY", "INCLUDE", "WATERMARK", "FORMAT", "ENCODE")
_AFTER_DEFAULT = ("NOT", "PRIMARY", "FORMERLY", "CODEC", "COMMENT")
RESERVED = (TIME, "_tp_delta", SEQUENCE)
"""Columns that every stream has of itself: a declaration of one adds nothing."""


@dataclass
class Elements:
    """What has been read of the columns and of the clauses about them."""

    rules: Rules
    columns: list[Column] = field(default_factory=list)
    included: list[Included] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    watermark: Watermark | None = None
    indexes: list[Index] = field(default_factory=list)
    event_time: str | None = None
    record_key: str = ""
    """The column that ksqlDB has in the key of records."""
    mentions: list[tuple[str, int]] = field(default_factory=list)
    """Columns named outside of their declaration, and where."""
    expressions: dict[str, exp.Expr] | None = None
    """Of a random stream, by column: what DEFAULT says its values are."""
    of_schema: bool = False
    """Whether the newest schema of the topic's values says which columns there are, besides those named."""

    @property
    def names(self) -> list[str]:
        """Of all columns that are declared."""
        return [column.name for column in self.columns] + [one.name for one in self.included]

    def mention(self, cursor: Cursor) -> str:
        """A column's name, which must turn out to be declared."""
        offset = cursor.offset
        name = cursor.name("a column")
        self.mentions.append((name, offset))
        return name

    def check_mentions(self, cursor: Cursor) -> None:
        known = self.names
        for column in self.columns:
            if column.former and column.name in self.primary_key:
                cursor.fail(f'"{column.name}" is of the primary key: the keys of records know it by one name')
        for name, offset in self.mentions:
            if name not in known and name not in RESERVED:
                cursor.fail(
                    f'no column "{name}" is declared', fix=suggestion(name, known), kind=UnknownName, offset=offset
                )


def elements(cursor: Cursor, rules: Rules) -> Elements:
    """``(column type .., PRIMARY KEY (..), WATERMARK FOR .., INDEX ..)``."""
    found = _listed(cursor, Elements(rules))
    if not found.names or found.of_schema:
        cursor.fail("a stream has at least one column")
    return found


def elements_of_stream(cursor: Cursor, rules: Rules, *, random: bool = False) -> Elements:
    """As ``elements``; or ``(*, ..)``, a list that names no column, or none at all: the columns of a schema."""
    found = Elements(rules, expressions={} if random else None)
    if cursor.at(*_AFTER_COLUMNS):
        found.of_schema = True
        return found
    _listed(cursor, found)
    found.of_schema = found.of_schema or not found.names
    return found


def _listed(cursor: Cursor, found: Elements) -> Elements:
    outer, cursor.clause = cursor.clause, COLUMN_LIST
    odd = cursor.at("-")
    cursor.expect("(", fix='a name of other signs than letters, digits and _ has quotes: "a-b"' if odd else "")
    if cursor.at(")"):
        cursor.fail("a stream has at least one column", fix="(id int)")
    if cursor.at("* ,", "* )"):
        cursor.advance()
        found.of_schema = True
    else:
        _element(cursor, found)
    while cursor.accept(","):
        if cursor.at(")"):
            break
        _element(cursor, found)
    cursor.expect(")")
    cursor.clause = outer
    return found


def _element(cursor: Cursor, found: Elements) -> None:
    first, known = cursor.index, len(found.names)
    _read_element(cursor, found)
    name = cursor.tokens[first].text if len(found.names) > known else ""
    cursor.elements.append(cursor.span(name, first))


def _read_element(cursor: Cursor, found: Elements) -> None:
    if cursor.at("PRIMARY KEY"):
        primary_key(cursor, found)
    elif cursor.refused(_CONSTRAINTS) or (cursor.refused(["CONSTRAINT"]) and not is_type(cursor.word(1))):
        _refuse_constraint(cursor)
    elif cursor.at("WATERMARK FOR"):
        watermark(cursor, found)
    elif cursor.at("INDEX") and cursor.word(2) == "(" and not is_type(cursor.word(1)):
        found.indexes.append(index(cursor, found))
    elif cursor.at("FAMILY") and cursor.word(2) == "(" and not is_type(cursor.word(1)):
        # Column families lay out storage, which a topic does not have.
        cursor.accept("FAMILY")
        cursor.name()
        cursor.wrapped(lambda: found.mention(cursor))
    else:
        _column(cursor, found)


def _refuse_constraint(cursor: Cursor) -> NoReturn:
    if cursor.refused(["CONSTRAINT"]) and cursor.word(2) == "PRIMARY":
        cursor.fail("a primary key has no name of its own", fix="PRIMARY KEY (a), without CONSTRAINT", kind=Unsupported)
    cursor.fail(
        f"{cursor.word()} would be checked as records are written, and a topic takes what its producers write",
        fix="leave it out; of a TABLE, PRIMARY KEY (k) keeps one row of each key; WHERE in a view keeps what fits",
        kind=Unsupported,
    )


def primary_key(cursor: Cursor, found: Elements) -> None:
    """``PRIMARY KEY k``, ``PRIMARY KEY k, l`` or ``PRIMARY KEY (k, l)``; in the list of columns a comma ends it."""
    if found.primary_key:
        cursor.fail("the primary key is given twice", fix="PRIMARY KEY (a, b), once")
    cursor.expect("PRIMARY KEY")
    if cursor.at("("):
        found.primary_key = columns_named(cursor, found)
    elif cursor.clause == COLUMN_LIST:
        found.primary_key = (found.mention(cursor),)
    else:
        found.primary_key = cursor.listed(lambda: found.mention(cursor))
    _enforcement(cursor)


def _enforcement(cursor: Cursor) -> None:
    """NOT ENFORCED, as Flink has it, says what is so here: the last record of a key counts, none is refused."""
    cursor.accept("NOT ENFORCED")


def columns_named(cursor: Cursor, found: Elements) -> tuple[str, ...]:
    """``(a, b)``."""
    return cursor.wrapped(lambda: found.mention(cursor))


def _column(cursor: Cursor, found: Elements) -> None:
    offset = cursor.offset
    name = cursor.name("a column")
    computed = cursor.at("AS")
    written = None if computed else type_name(cursor)
    data_type = INSTANT if written is None else arrow_type(cursor, written, found.rules)
    word = "" if written is None else written.name
    column = Column(
        name, data_type, form=word if word in TEXT_FORMS else "", declared=word if word in SHOWN_AS_DECLARED else ""
    )
    while not cursor.at(",", ")"):
        column = _with_option(cursor, column, found)
    part = declared_part(cursor, column, offset) if found.rules is Rules.TIMEPLUS else None
    if part is not None:
        if name in found.names:
            cursor.fail(f'the column "{name}" is declared twice', offset=offset)
        found.included.append(part)
        return
    for other in found.columns:
        if name == other.name:
            cursor.fail(f'the column "{name}" is declared twice', offset=offset)
        if name.casefold() == other.name.casefold():
            cursor.fail(f'the columns "{other.name}" and "{name}" differ in letter case alone', offset=offset)
        for shared in sorted({name, *column.former} & {other.name, *other.former}):
            cursor.fail(f'records with a member "{shared}" could mean "{other.name}" or "{name}"', offset=offset)
    if name in (DELTA, ARRIVAL):
        cursor.fail(f'the name "{name}" is reserved', offset=offset)
    if name not in RESERVED:
        found.columns.append(column)


def _with_option(cursor: Cursor, column: Column, found: Elements) -> Column:
    """``column`` with the option that comes next."""
    if cursor.accept("NOT NULL"):
        return replace(column, nullable=False)
    if cursor.accept("AS PROCTIME ( )"):
        return replace(column, record_time=_of_time(cursor, column, RecordTime.ALWAYS))
    if cursor.accept("DEFAULT"):
        if found.expressions is not None and column.name not in RESERVED:
            found.expressions[column.name] = _random(cursor, column.name)
            return column
        if cursor.word() in _CLOCKS:
            return replace(column, record_time=_clock(cursor, column))
        return replace(column, default=_default(cursor, column.name, found))
    if cursor.accept("FORMERLY"):
        former = dict.fromkeys((*column.former, cursor.name("a former name of the column")))
        return replace(column, former=tuple(name for name in former if name != column.name))
    _pass_option(cursor, column, found)
    return column


def _pass_option(cursor: Cursor, column: Column, found: Elements) -> None:
    """One that says nothing of the column itself."""
    if cursor.at("PRIMARY KEY"):
        if found.primary_key:
            cursor.fail("the primary key is given twice", fix="PRIMARY KEY (a, b) after the columns")
        cursor.accept("PRIMARY KEY")
        found.primary_key = (column.name,)
        _enforcement(cursor)
    elif cursor.at("KEY ,", "KEY )"):
        cursor.accept("KEY")
        found.record_key = column.name
    elif cursor.accept("CODEC"):
        cursor.wrapped(cursor.nested)
    elif found.rules is Rules.RISINGWAVE and cursor.accept("COLLATE"):
        _expect_bytes(cursor, column)
    elif cursor.accept("COMMENT"):
        cursor.string()
    elif not cursor.accept("NULL"):
        _refuse_option(cursor, column.name)


def _expect_bytes(cursor: Cursor, column: Column) -> None:
    """Texts are in the order of their bytes, as in these collations and in no other."""
    offset, name = cursor.offset, cursor.name("a collation")
    if name not in ("C", "POSIX"):
        cursor.fail(f'texts are compared by their bytes, not as in "{name}"', offset=offset, fix='COLLATE "C", or none')
    if not pa.types.is_string(column.type) or column.form:
        cursor.fail(f"a collation is of texts, and {column.name} is none", offset=offset, fix="leave it out")


def _clock(cursor: Cursor, column: Column) -> RecordTime:
    """``now()``, ``now64(3)``, ``now64(3, 'UTC')``: of a topic, the time of the record."""
    cursor.advance()
    if cursor.accept("("):
        while not cursor.accept(")"):
            cursor.advance()
    return _of_time(cursor, column, RecordTime.WHERE_ABSENT)


def _of_time(cursor: Cursor, column: Column, way: RecordTime) -> RecordTime:
    if not pa.types.is_timestamp(column.type):
        cursor.fail(
            f'"{column.name}" is {type_words(column.type)}, and {way} a time',
            fix=f"{column.name} datetime64(3) DEFAULT now64(3)",
            kind=Unsupported,
        )
    return way


def _refuse_option(cursor: Cursor, name: str) -> NoReturn:
    if cursor.at("AS", "ALIAS", "MATERIALIZED", "GENERATED", "AUTO_INCREMENT", "EXPRESSION"):
        cursor.fail(
            f'the column "{name}" would be computed',
            fix="leave it out, and compute it in the SELECT of a view",
            kind=Unsupported,
        )
    if cursor.refused(["UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT", "ASSUME"]):
        _refuse_constraint(cursor)
    cursor.fail_expecting(",", ")", "DEFAULT", "NOT NULL", "PRIMARY KEY")


def _default(cursor: Cursor, name: str, found: Elements) -> str | None:
    """The text of a literal; the default of ``_tp_time`` names the event time column instead."""
    offset = cursor.offset
    tokens = cursor.nested_until(*_AFTER_DEFAULT)
    texts = [str(token.text) for token in tokens]
    kinds = [token.token_type for token in tokens]
    if name == TIME and kinds in ([TokenType.VAR], [TokenType.IDENTIFIER]):
        found.event_time = texts[0]
        found.mentions.append((texts[0], offset))
        return None
    if kinds in ([TokenType.STRING], [TokenType.NUMBER]) or kinds == [TokenType.DASH, TokenType.NUMBER]:
        return "".join(texts)
    if kinds in ([TokenType.TRUE], [TokenType.FALSE]):
        return texts[0].lower()
    if kinds != [TokenType.NULL] and name != TIME:
        if (number := _number_of(_expression(cursor, tokens))) is not None:
            return f"{number:f}"
        cursor.fail(
            f'the default of "{name}" is not a literal, nor a sum of numbers',
            fix="DEFAULT 0, DEFAULT 60 * 24, DEFAULT 'text', DEFAULT true",
            kind=Unsupported,
            offset=offset,
        )
    # Without a column to take it from, _tp_time is the time of the record.
    return None


def _random(cursor: Cursor, name: str) -> exp.Expr:
    """An expression, in which ``rand()`` and its like differ from row to row."""
    offset = cursor.offset
    tree = _expression(cursor, cursor.nested_until(*_AFTER_DEFAULT))
    if tree is None:
        cursor.fail(f'the values of "{name}" are no expression', fix="DEFAULT rand() % 100", offset=offset)
    return tree


def _expression(cursor: Cursor, tokens: list[Token]) -> exp.Expr | None:
    try:
        [tree] = Dovetail().parser().parse(tokens, cursor.script)
    except ParseError:
        return None
    return tree


def _number_of(tree: exp.Expr | None) -> Decimal | None:
    """The value of sums, differences and products of numbers; None of anything else."""
    match tree:
        case exp.Literal(is_string=False):
            return Decimal(str(tree.this))
        case exp.Paren():
            return _number_of(tree.this)
        case exp.Neg():
            inner = _number_of(tree.this)
            return None if inner is None else -inner
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = _number_of(tree.this), _number_of(tree.expression)
            if left is None or right is None:
                return None
            if isinstance(tree, exp.Mul):
                return left * right
            return left + right if isinstance(tree, exp.Add) else left - right
    return None


def watermark(cursor: Cursor, found: Elements) -> None:
    """``WATERMARK FOR c AS c - INTERVAL '5 SECONDS'``, or ``AS c`` for no delay."""
    outer, cursor.clause = cursor.clause, "WATERMARK"
    cursor.expect("WATERMARK FOR")
    column = found.mention(cursor)
    cursor.expect("AS")
    offset = cursor.offset
    if cursor.name("a column") != column:
        fix = f"{column} - INTERVAL '5 SECONDS'"
        cursor.fail(f'the watermark of "{column}" is made of "{column}" itself', fix=fix, offset=offset)
    found.watermark = Watermark(column, duration_ms(cursor) if cursor.accept("-") else 0)
    cursor.clause = outer


def index(cursor: Cursor, found: Elements) -> Index:
    """``INDEX i (a, b) [UNIQUE] [STORING (c)]``."""
    cursor.expect("INDEX")
    name = cursor.name("the name of an index")
    columns = columns_named(cursor, found)
    unique = bool(cursor.accept("UNIQUE"))
    storing = columns_named(cursor, found) if cursor.accept("STORING") else ()
    return Index(name, columns, storing, unique or bool(cursor.accept("UNIQUE")))
