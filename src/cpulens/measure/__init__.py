"""What must run to be known: the peaks of this host."""

from cpulens.measure.peaks import peak

__all__ = ["peak"]
