"""A statement is shown as it stands, but for its secrets, however these are spelled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.errors import SqlError
from dovetail.services.cli.run import shortened
from dovetail.sql.catalog import Relation, What
from dovetail.sql.syntax.masked import masked_unread
from dovetail.sql.syntax.parse import as_shown, parse, parse_one
from tests.tries import tries

_GAPS = ("", " ", "\n", "/**/", " /* a */ ", " -- a\n", " = ", "=/* b */")
_QUOTES = ("'{}'", "$${}$$", "$a${}$a$", '"{}"', "`{}`", "N'{}'", " {}", " 4{}", "-4{}", "'it''s {}'", "'it\\'s {}'")
_SECRETS = st.from_regex("zq[0-9]{6,12}", fullmatch=True)
_TEXTS = (
    "CREATE DICTIONARY d (id int) PRIMARY KEY id\n SOURCE(MYSQL(USER 'u' PASSWORD{} DB 'x' TABLE 't')) LAYOUT(FLAT())",
    "CREATE DICTIONARY d (id int) PRIMARY KEY id SOURCE(HTTP(URL 'http://h/p' PASSWORD{})) -- end\n LAYOUT(DIRECT())",
    "CREATE EXTERNAL TABLE d SETTINGS type = 'mysql', password ={}, address = 'h:1', table = 't'",
    "CREATE EXTERNAL STREAM s (a int) SETTINGS type = 'kafka', topic = 't', sasl.password ={}, brokers = 'b:1'",
    "CREATE SOURCE s (a int) WITH (connector = 'kafka', properties.sasl.password ={}) FORMAT PLAIN ENCODE JSON",
)
_ADDRESSES = (
    *("https://u:{}@h/a", "https://{}@h/a", "https://h/a?key={}", "https://h/a?b=c&sig={}", "https://h/a?auth={}"),
    *("https://h/a?token={}&b=c", "redis://:{}@h:1/0", "https://h/a?x-amz-signature={}"),
)


def written(gap: str, quotes: str, secret: str) -> str:
    digits = secret if "4{}" not in quotes else secret[2:]
    return gap + quotes.format(digits)


def is_read(text: str) -> bool:
    try:
        parse(text)
    except SqlError:
        return False
    return True


@settings(max_examples=tries(25), deadline=None)
@given(st.sampled_from(_TEXTS), st.sampled_from(_GAPS), st.sampled_from(_QUOTES), _SECRETS)
def test_a_secret_in_any_spelling_is_masked_and_nothing_else(text: str, gap: str, quotes: str, secret: str) -> None:
    gap = gap.replace("=", " ") if "={}" in text else gap
    statement = text.replace("{}", written(gap, quotes, secret))
    digits = secret[2:]
    if not is_read(statement):
        assert digits not in as_shown(statement)
        return
    shown = as_shown(statement)
    assert shown == text.replace("{}", f"{gap}{quotes[: len(quotes) - len(quotes.lstrip())]}'***'")
    assert Relation("d", What.DICTIONARY, statement, 0).shown == shown
    assert as_shown(shown) == shown
    assert digits not in shortened(statement)
    assert type(parse_one(shown)) is type(parse_one(statement))


@settings(max_examples=tries(10), deadline=None)
@given(st.sampled_from(_TEXTS), st.sampled_from(_GAPS), st.sampled_from(_QUOTES), _SECRETS, st.integers(0, 2))
def test_an_error_shows_no_secret(text: str, gap: str, quotes: str, secret: str, words: int) -> None:
    statement = text.replace("{}", written(gap, quotes, secret))
    before = " ".join(statement.split(" ")[:words])
    with pytest.raises(SqlError) as refused:
        parse(f"{before} ) oops {statement.removeprefix(before)}")
    assert secret[2:] not in str(refused.value)


@settings(max_examples=tries(25), deadline=None)
@given(st.sampled_from(_ADDRESSES), _SECRETS)
def test_an_address_is_shown_without_its_secret(address: str, secret: str) -> None:
    text = "CREATE DICTIONARY d (id int) PRIMARY KEY id SOURCE(HTTP(URL '{}')) LAYOUT(DIRECT()) COMMENT '{}'"
    assert as_shown(text.replace("{}", address.format(secret))) == text.replace("{}", address.format("***"))


@pytest.mark.parametrize(
    "text",
    [
        "CREATE DICTIONARY d (id int) PRIMARY KEY id SOURCE(MYSQL(PASSWORD ENV 'X_PASSWORD' DB 'x')) LAYOUT(DIRECT())",
        "CREATE DICTIONARY d (id int) PRIMARY KEY id SOURCE(MYSQL(PASSWORD FILE '/run/token' DB 'x')) LAYOUT(DIRECT())",
        "CREATE VIEW v AS SELECT password, token AS secret FROM s WHERE password = 'x' AND token: 'a'",
        "CREATE VIEW v AS SELECT a FROM s WHERE token = 'x'  -- of the token",
        "CREATE STREAM s (password string, token int)",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert as_shown(text) == text or "token: 'a'" in text


@pytest.mark.parametrize("setting", ["a = {}", "a = -{}"])
def test_a_number_of_many_digits_is_refused_as_it_is_read(setting: str) -> None:
    parse(f"CREATE STREAM s (a int) SETTINGS {setting.format('9' * 1_000)}")
    with pytest.raises(SqlError, match="more than 1000 characters"):
        parse(f"CREATE STREAM s (a int) SETTINGS {setting.format('9' * 5_000)}")


@pytest.mark.parametrize(
    "value",
    [
        *("E'hunter2'", "U&'hunter2'", "('hunter2')", "['hunter2']", "{'a': 'hunter2'}", "'a' 'hunter2'", "'x'hunter2"),
        *("'a' || 'hunter2'", "'a'||lower('hunter2')", "concat('hunter2', 'a')"),
    ],
)
def test_a_value_that_is_none_is_masked_in_the_error_too(value: str) -> None:
    text = f"CREATE DICTIONARY d (a int) PRIMARY KEY a SOURCE(MYSQL(PASSWORD {value} DB 'shop')) LAYOUT(FLAT())"
    assert "hunter2" not in masked_unread(text)
    assert "DB 'shop'" in masked_unread(text)
