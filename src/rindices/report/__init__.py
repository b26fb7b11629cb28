"""The report of a run: reads the run folder, writes one HTML file that works offline."""

from rindices.report.build import make_report, write_report
from rindices.report.document import Report

__all__ = ["Report", "make_report", "write_report"]
