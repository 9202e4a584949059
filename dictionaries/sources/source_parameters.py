"""The parameters of a source with their defaults."""

from __future__ import annotations

from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.definition.kinds import SOURCES
from dovetail.dictionaries.definition.options import Parameter

_PER_SECOND = 1000


def source_parameters(definition: Definition) -> dict[str, Parameter]:
    """What SOURCE gives, else the defaults; SETTINGS(timeout_ms, load_timeout_ms) win over both."""
    declared = SOURCES[definition.source.kind]
    parameters = {option.name: option.default for option in declared if option.default is not None}
    parameters |= definition.source.parameters
    for name in ("timeout", "load_timeout"):
        if name in parameters and f"{name}_ms" in definition.settings:
            parameters[name] = float(definition.settings[f"{name}_ms"]) / _PER_SECOND
    return parameters
