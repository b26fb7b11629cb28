"""The report of a run: reads the record of it, writes one HTML file that works offline."""

from rindices.report.page import Report, make_report, write_report

__all__ = ["Report", "make_report", "write_report"]
