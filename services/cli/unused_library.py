"""A library that is installed, and that this process is not to load."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Unused(MetaPathFinder, Loader):
    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == self._name else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        raise ModuleNotFoundError(f"{spec.name} is not loaded in this process", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Never reached."""


def leave_out(library: str) -> None:
    """From now on its import fails in this process; where it has been imported, nothing is done.

    It is for libraries that others load on the mere chance that they are wanted: pyarrow looks for pandas at the first
    list it is given, which takes a sixth of a second. None in ``sys.modules`` would say the same to an ``import`` of
    Python; what Cython has compiled takes the None for the module.
    """
    if library not in sys.modules:
        sys.meta_path.insert(0, _Unused(library))
