"""record(), region(), iteration(), watch(): levels and capture around a block, ready to be asked."""

from cpulens.recording.layers import Watch, watch
from cpulens.recording.markers import iteration, region
from cpulens.recording.recorder import Recording, record
from cpulens.recording.schedule import Schedule

__all__ = ["Recording", "Schedule", "Watch", "iteration", "record", "region", "watch"]
