"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings

# A shared machine pauses a test for longer than any deadline; no test here is about time.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
