"""Which chains of joins are delta joins, as the rule ``join_order`` chooses and as the setting ``delta_join`` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.changelog.errors import SqlError
from dovetail.sql.plan.join_order import about, input_text, plain_name, words_of


@dataclass(frozen=True)
class DeltaChoice:
    """A chain of joins that is a delta join, and why.

    inputs   those of few rows first: of equally many copies those are kept that spare the last ones
    kept     about how many rows it keeps in all; None: nobody has asked, the setting says it
    binary   as many of the inputs and what is between joins of two in their best order
    rows     about how many rows each input has
    """

    inputs: tuple[str, ...]
    kept: float | None = None
    binary: float | None = None
    rows: Mapping[str, float] | None = None

    @property
    def named(self) -> str:
        return f"({' '.join(map(input_text, self.inputs))})"

    @property
    def readable(self) -> str:
        if self.kept is None or self.binary is None or self.rows is None:
            return f"Delta join {self.named}  as SETTINGS delta_join has it"
        inputs = ", ".join(f"{name} {about(rows)}" for name, rows in self.rows.items())
        kept = f"about {about(self.kept)} rows kept, by joins of two {about(self.binary)}"
        return f"Delta join {self.named}  {kept}  estimated rows: {inputs}"


@dataclass(frozen=True)
class DeltaSetting:
    """What ``delta_join`` says.

    forbidden  there is none
    every      all chains that can be one are
    chains     by their inputs
    """

    forbidden: bool = False
    every: bool = False
    chains: tuple[tuple[str, ...], ...] = ()

    @property
    def given(self) -> bool:
        return self.forbidden or self.every or bool(self.chains)


def read_delta_setting(text: str) -> DeltaSetting:
    """Raises SqlError for what it cannot be."""
    match text.strip().lower():
        case "":
            return DeltaSetting()
        case "0" | "false":
            return DeltaSetting(forbidden=True)
        case "1" | "true":
            return DeltaSetting(every=True)
    chains = _chains(words_of(text) or [])
    if not chains:
        raise SqlError(
            f"delta_join cannot be {text!r}",
            where="SETTINGS delta_join",
            fix="1: every chain of joins that can be one is a delta join; 0: none is; or the inputs of each chain in "
            "brackets, by their aliases: '(a b c), (d e f)'",
        )
    return DeltaSetting(chains=chains)


def deltas_text(choices: tuple[DeltaChoice, ...]) -> str:
    """As the setting has them; ``read_delta_setting`` reads it."""
    return ", ".join(choice.named for choice in choices)


def _chains(words: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """``(a b) (c d)``; none where a word stands in the wrong place."""
    chains: list[tuple[str, ...]] = []
    within: list[str] | None = None
    for word in words:
        if word == "(" and within is None:
            within = []
        elif word == ")" and within:
            chains.append(tuple(within))
            within = None
        elif within is not None and word not in ("(", ")", ","):
            within.append(plain_name(word))
        elif word != "," or within is not None:
            return ()
    return tuple(chains) if within is None else ()
