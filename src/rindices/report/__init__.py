"""The report of a run: reads the run folder, writes one HTML file that works offline."""

from rindices.report.build import write_report

__all__ = ["write_report"]
