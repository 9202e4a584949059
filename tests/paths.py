"""Where things of the checkout are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "cases"
GOLDEN = ROOT / "tests" / "golden"
