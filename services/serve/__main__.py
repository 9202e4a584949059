"""``python -m dovetail.services.serve``: the service over HTTP, until it is told to stop."""

from __future__ import annotations

import sys

from dovetail.runtime.processes.start import exit_code_of
from dovetail.services.serve.process import serve

if __name__ == "__main__":
    sys.exit(exit_code_of(serve))
