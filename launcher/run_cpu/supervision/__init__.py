"""Start a job's instances and stand by them: live output, signals, exit codes, and nothing left behind."""

from run_cpu.supervision.front import supervise

__all__ = ["supervise"]
