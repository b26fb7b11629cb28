"""Helpers that read the contents of a page."""

import html
import re
from html.parser import HTMLParser

from rindices.pages.report import write_report

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SCRIPT, LAYERS = "<script>alert('region')</script>", ["Patterns", "Checks", "Details"]
SECTIONS = [
    "People",
    "What the patterns resemble",
    "Participants",
    "How to read a severity",
    "Repetitions and their agreement",
    "Methods paragraph",
    "Limits",
    "Glossary",
    "Settings and versions",
]


def sections_of(n_patterns):
    """Return the titles of a report's sections; each pattern has a card with a title."""
    return [*(f"Pattern {place}" for place in range(1, n_patterns + 1)), *SECTIONS]


def words_of(svg):
    """Return the text of a drawing, with its lines joined."""
    return " ".join(" ".join(re.findall(r"<text[^>]*>([^<]*)<", svg)).split())


def missing(text, *parts):
    """Return the parts that a text lacks."""
    return [part for part in parts if part not in text]


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.scripts, self.open = [], [], [], []
        self.feed(text)
        headings = re.findall(r"<h(\d)\b[^>]*>(.*?)</h\1>", text, re.DOTALL)
        self.headings = [(int(level), html.unescape(re.sub("<[^>]*>", "", words))) for level, words in headings]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("svg", "script", "style"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open[-1:]:
            self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] in (["script"], ["style"]):
            self.scripts.append(data)
        elif not self.open:
            self.text.append(data)

    def every(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def policies(self):
        return [meta["content"] for meta in self.every("meta") if meta.get("http-equiv") == "Content-Security-Policy"]

    @property
    def words(self):
        return " ".join("".join(self.text).split())


def pictures(text):
    """Return the drawings of a page by name."""
    form = r'<figure data-name="([^"]*)">\s*<div class="scroller">(<svg.*?</svg>)</div>'
    return dict(re.findall(form, text, re.DOTALL))


def report_of(folder, **options):
    return Page(write_report(folder, **options).read_text(encoding="utf-8"))


def rows_of(text, caption):
    """Return the cells of the table with this caption, one list per row, with tags replaced by spaces."""
    table = text.split(f"<caption>{caption}")[1].split("</table>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table.split("<tbody>")[1])
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [[" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in row] for row in cells]
