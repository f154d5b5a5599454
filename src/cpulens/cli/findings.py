"""`cpulens findings`: what is wrong with a run, how one sees it, what to do."""

from __future__ import annotations

import argparse
import json
import sys

from cpulens.analyze.coverage import cover
from cpulens.analyze.findings import SEVERITIES, Thresholds, find
from cpulens.configuration import settings
from cpulens.verbose import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.epilog = "Thresholds: [tool.cpulens.findings] in pyproject.toml, or [findings] in cpulens.toml."
    parser.add_argument("logs", nargs="+", metavar="FILE", help="run files (*.cpulens) or raw logs; - is stdin")
    parser.add_argument(
        "--min-severity",
        choices=SEVERITIES,
        default=SEVERITIES[-1],
        help="leave out what is less: error, warning (it costs time), advice (worth a try; default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the findings; 0 also when there are some."""
    thresholds = Thresholds.of(settings("findings"))
    trace = load(*args.logs)
    wanted = SEVERITIES[: SEVERITIES.index(args.min_severity) + 1]
    covered = cover(trace)
    found = [finding for finding in find(trace, thresholds, covered) if finding.severity in wanted]
    if args.json:
        from cpulens.report.findings_json import findings_object

        json.dump(findings_object(found, covered), sys.stdout, ensure_ascii=False)
        print()
        return 0
    from cpulens.report.findings import print_findings

    print_findings(sys.stdout, found, covered)
    return 0
