"""``python -m services.demo``: the same as ``dovetail demo``."""

from services.cli.main import app

if __name__ == "__main__":
    app(["demo"])
