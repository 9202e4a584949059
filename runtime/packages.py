"""Where the package is that all modules of Dovetail are imported from.

In a checkout ``dovetail/`` has the Python API, and a link to the folder of each room, which stands beside it.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE_ROOT = Path(__file__).absolute().parents[2]
"""The folder that has ``dovetail``: a process that another one starts begins in it, and imports the same modules."""
