"""Values of settings that are none: refused, with the nearest that is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.query_settings import SETTINGS, Setting, checked

CHOSEN = [setting for setting in SETTINGS if setting.choices]
BOUNDED = [setting for setting in SETTINGS if setting.bounds is not None]


def misspelt(word: str) -> Iterator[str]:
    """Two letters exchanged, one left out, one twice."""
    for place in range(len(word) - 1):
        yield word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        yield word[:place] + word[place + 1 :]
        yield word[: place + 1] + word[place:]


@pytest.mark.parametrize("setting", CHOSEN, ids=lambda setting: setting.name)
def test_a_misspelt_value_is_refused_with_the_nearest(setting: Setting) -> None:
    for meant in setting.choices:
        assert checked({setting.name: meant.upper()}).text(setting.name) == meant
        for given in set(misspelt(meant)) - set(setting.choices):
            with pytest.raises(SqlError, match=f"{setting.name} cannot be {given!r}") as refused:
                checked({setting.name: given})
            assert refused.value.fix == f'did you mean "{meant}"? one of: {", ".join(setting.choices)}'


@pytest.mark.parametrize("setting", CHOSEN, ids=lambda setting: setting.name)
def test_a_list_is_taken_where_several_make_sense(setting: Setting) -> None:
    """Else it would be none of them, and the setting without effect."""
    given = ", ".join(setting.choices[:2])
    if setting.several:
        assert checked({setting.name: given}).text(setting.name) == given
        given += ", x"
    with pytest.raises(SqlError, match=f"{setting.name} cannot be"):
        checked({setting.name: given})


@pytest.mark.parametrize("given", ["", " ", "hybrid memory", "hybrid;", "0", 1, True, None])
def test_what_is_no_choice_at_all_is_refused(given: str | int | None) -> None:
    with pytest.raises(SqlError, match="default_hash_join cannot be"):
        checked({"default_hash_join": given})


@pytest.mark.parametrize("setting", BOUNDED, ids=lambda setting: setting.name)
def test_a_number_out_of_bounds_is_refused(setting: Setting) -> None:
    assert setting.bounds is not None
    least, most = setting.bounds
    for fits in (least, most):
        assert checked({setting.name: fits}).number(setting.name) == fits
    for given in (least - 1, most + 1, "x", "", 1.5):
        with pytest.raises(SqlError, match=f"{setting.name} cannot be"):
            checked({setting.name: given})


def test_every_number_has_bounds_but_that_of_versions() -> None:
    """Which the rule of its join bounds, over whatever it joins."""
    numbers = {setting.name for setting in SETTINGS if setting.type is int}
    assert numbers - {setting.name for setting in BOUNDED} == {"keep_versions"}
