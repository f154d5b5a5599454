"""record(), region(), iteration(): levels and capture around a block, ready to be asked."""

from cpulens.recording.markers import iteration, region
from cpulens.recording.recorder import Recording, record

__all__ = ["Recording", "iteration", "record", "region"]
