"""Where the packages of Dovetail are."""

from __future__ import annotations

from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parents[1]
"""The folder that they are imported from: a process that another one starts begins in it, and finds the same ones."""
