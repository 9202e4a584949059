"""No deadlines: the first call of a test loads Arrow's and Polars' kernels."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("changelog", deadline=None)
settings.load_profile("changelog")
