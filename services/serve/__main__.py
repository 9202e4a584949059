"""``python -m services.serve``: the service over HTTP, until it is told to stop."""

from __future__ import annotations

import sys

from runtime.processes.start import exit_code_of
from services.serve.process import serve

if __name__ == "__main__":
    sys.exit(exit_code_of(serve))
