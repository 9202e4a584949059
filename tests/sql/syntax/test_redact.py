"""Passwords do not show."""

import time

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.parse import parse
from dovetail.sql.syntax.redact import quoted, redacted, shown

_PARTS = (
    *(
        "a",
        "a.",
        "sasl.",
        "sasl.a",
        "pwd",
        "password ",
        "password'",
        "password''",
        "password = ",
        "secret.key",
        "secret ' ",
    ),
    *(
        "pwd/*",
        "pwd--",
        "pwd$$",
        "pwd $a",
        "://",
        "://a",
        "://a:",
        "https://a",
        "?a",
        "?key",
        "&sig=",
        "create secret as ",
    ),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SOURCE(MYSQL(USER 'root' PASSWORD 'hunter2' DB 'x'))", "SOURCE(MYSQL(USER 'root' PASSWORD '***' DB 'x'))"),
        ("SETTINGS password='hunter2', a=1", "SETTINGS password='***', a=1"),
        ("sasl.password = 'hun''ter2', topic = 't'", "sasl.password = '***', topic = 't'"),
        ("PASSWORD 'hun\\'ter2' x", "PASSWORD '***' x"),
        ("properties.sasl.jaas.config = 'x password=\"hunter2\";'", "properties.sasl.jaas.config = '***'"),
        (
            "properties='sasl.username=hunter2;sasl.password=hunter2;a=b'",
            "properties='sasl.username=***;sasl.password=***;a=b'",
        ),
        ("sasl.mechanism = 'PLAIN'", "sasl.mechanism = 'PLAIN'"),
        ("mysql+pymysql://root:hunter2@db:3306/x", "mysql+pymysql://root:***@db:3306/x"),
        ("redis://:hunter2@cache:6379/0", "redis://:***@cache:6379/0"),
        ('{"password": "hunter2", "user": "u"}', '{"password": "***", "user": "u"}'),
        ("CREATE SECRET s WITH (backend = 'meta') AS 'hunter2'", "CREATE SECRET s WITH (backend = 'meta') AS '***'"),
        ("s3.secret.key = 'hunter2'", "s3.secret.key = '***'"),
        ("PASSWORD 'hunter2", "PASSWORD '***'"),
        ("PASSWORD/**/'hunter2' DB", "PASSWORD/**/'***' DB"),
        ("PASSWORD -- a\n N'hunter2' DB", "PASSWORD -- a\n '***' DB"),
        ("PASSWORD $a$hunter2$$'$a$ DB", "PASSWORD *** DB"),
        ("https://hunter2@host/a", "https://***@host/a"),
        ("https://host/a?key=hunter2&b=1", "https://host/a?key=***&b=1"),
        ("https://host/a?b=1&sig=hunter2 c", "https://host/a?b=1&sig=*** c"),
        ("PASSWORD ENV 'X_PASSWORD' DB 'x'", "PASSWORD ENV 'X_PASSWORD' DB 'x'"),
        ("give PASSWORD '..', ENV 'NAME' or FILE 'path'", "give PASSWORD '..', ENV 'NAME' or FILE 'path'"),
        ("rediss://user:password@host:port/0", "rediss://user:password@host:port/0"),
        ("CREATE STREAM s (password string, token int)", "CREATE STREAM s (password string, token int)"),
        ("http://host:8080/path", "http://host:8080/path"),
    ],
)
def test_redacted(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert redacted(expected) == expected


@pytest.mark.parametrize("before", ["", "PASSWORD '", "://a:", "?"])
@pytest.mark.parametrize("part", _PARTS)
def test_it_takes_time_that_grows_with_the_text(before: str, part: str) -> None:
    text = before + part * (1_000_000 // len(part))
    began = time.process_time()
    redacted(text)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("secret", ["PASSWORD 'hunter2'", "redis://u:hunter2@h", "https://hunter2@h", "a?sig=hunter2"])
def test_what_is_cut_shows_no_half_of_a_password(secret: str) -> None:
    for longest in range(len(secret)):
        assert "hu" not in quoted(secret, longest)


def test_the_value_of_a_setting() -> None:
    assert shown("sasl.password", "hunter2") == "***"
    assert shown("topic", "t") == "t"
    assert shown("brokers", "sasl://u:hunter2@b") == "sasl://u:***@b"
    assert shown("shards", 3) == 3


def test_a_password_on_a_line_of_its_own_does_not_show_in_an_error() -> None:
    with pytest.raises(SqlError) as refused:
        parse("CREATE DICTIONARY d (id int) PRIMARY KEY id SOURCE(MYSQL(password\n  'hunter2' oops oops")
    assert "hunter2" not in str(refused.value)
