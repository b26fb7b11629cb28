"""Helpers that read the contents of a page."""

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
        self.tags, self.text, self.headings, self.scripts, self.open = [], [], [], [], None
        self.drawing = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.drawing += tag == "svg"
        if re.fullmatch(r"h\d|script|style", tag):
            self.open = tag
        if re.fullmatch(r"h\d", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_endtag(self, tag):
        self.open = None if tag == self.open else self.open
        self.drawing -= tag == "svg"

    def handle_data(self, data):
        if self.open in ("script", "style"):
            self.scripts.append(data)
        elif not self.drawing:
            self.text.append(data)
            if self.open:
                level, text = self.headings[-1]
                self.headings[-1] = (level, text + data)

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
