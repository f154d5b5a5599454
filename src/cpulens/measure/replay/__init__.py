"""Run the problems of a trace again on this host, through the native bindings, and compare with the run."""

from cpulens.measure.replay.run import VARIANTS, replay

__all__ = ["VARIANTS", "replay"]
