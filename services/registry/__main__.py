"""``python -m dovetail.services.registry``: the schema registry, until it is told to stop."""

from __future__ import annotations

import sys

from dovetail.runtime.processes.start import exit_code_of
from dovetail.services.registry.process import serve_registry

if __name__ == "__main__":
    sys.exit(exit_code_of(serve_registry))
