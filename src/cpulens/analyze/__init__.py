"""Trace in, small frozen results out: pure."""
