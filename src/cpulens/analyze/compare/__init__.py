"""What changed between two runs, how sure that is, and what it comes from."""

from __future__ import annotations

from cpulens.analyze.compare.compare import ALPHA, MIN_EFFECT, compare
from cpulens.analyze.compare.result import Cause, Change, Comparison, Difference, Effect, Kernel, Times

__all__ = ["ALPHA", "MIN_EFFECT", "Cause", "Change", "Comparison", "Difference", "Effect", "Kernel", "Times", "compare"]
