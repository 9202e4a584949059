"""Options: the named values in the brackets of SOURCE, LAYOUT and SETTINGS, checked against what is declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.suggest import choice, suggestion

Parameter = str | int | float | bool
Parameters = Mapping[str, Parameter]
_SYNONYMS = {"database": "db", "username": "user", "hostname": "host"}
"""What other systems call an option."""
_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Option:
    """A named value that may be given.

    kind      its type; ``float`` takes whole numbers too, ``bool`` also 1, 0, 'yes' and 'no'
    default   what holds where it is not given
    least     the least number allowed
    choices   the only values allowed, in lower case
    refused   why it is known and not taken, as a fix: what there is in its place
    """

    name: str
    kind: type[Parameter] = str
    default: Parameter | None = None
    required: bool = False
    least: float | None = None
    choices: tuple[str, ...] = ()
    refused: str = ""


def read_options(options: Sequence[Option], given: Parameters, where: str) -> dict[str, Parameter]:
    """``given`` with its values in the declared types; defaults are not added.

    Raises UnknownName for a name that is not declared, Unsupported for one that is refused, SqlError for a value that
    does not fit or is missing.
    """
    known = {option.name: option for option in options}
    read = {}
    for name, value in given.items():
        if name not in known:
            raise UnknownName(
                f'there is no option "{name}"', where=where, fix=suggestion(_SYNONYMS.get(name, name), known)
            )
        if known[name].refused:
            raise Unsupported(f"{name.upper()} has nothing to set here", where=where, fix=known[name].refused)
        read[name] = _value(known[name], value, where)
    for option in options:
        if option.required and option.name not in read:
            example = "'..'" if option.kind is str else 1
            raise SqlError(
                f"{option.name.upper()} is missing", where=where, fix=f"give it: {option.name.upper()} {example}"
            )
    return read


def _value(option: Option, value: Parameter, where: str) -> Parameter:
    read = _converted(option.kind, value)
    expected = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[option.kind]
    if read is None:
        raise SqlError(f"{option.name.upper()} takes {expected}", where=where)
    if option.least is not None and float(read) < option.least:
        raise SqlError(f"{option.name.upper()} is at least {option.least:g}, not {read}", where=where)
    if option.choices and str(read).lower() not in option.choices:
        raise SqlError(f'{option.name.upper()} knows no "{read}"', where=where, fix=choice(str(read), option.choices))
    return read


def _converted(kind: type[Parameter], value: Parameter) -> Parameter | None:
    """``value`` as a ``kind``; None where it is none."""
    if kind is bool:
        return value if isinstance(value, bool) else _SWITCH.get(str(value).lower())
    if kind is str:
        return str(value)
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    if kind is float:
        return number
    return int(value) if number.is_integer() else None
