"""One archive to attach to a bug report: a run and what is known of it, without names, paths and addresses."""

from __future__ import annotations

from cpulens.report.bundle.archive import Bundle, Member, bundle
from cpulens.report.bundle.identity import Identity, here

__all__ = ["Bundle", "Identity", "Member", "bundle", "here"]
