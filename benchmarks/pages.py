"""Time of the pages of `rindices open` on the server: 5,000 people, 200 regions.

    python benchmarks/pages.py --out results/pages.csv      # two minutes on two cores

Processor time of the first response, for which a table or a run is read, and of the same page again. A page that is not
ready at once says so and reloads, so that nobody waits in front of a blank page.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from starlette.requests import Request

from rindices import OutputSettings, SearchSettings, TableSettings, fit_table
from rindices.cli.console_and_exits import on_command_line
from rindices.pages.server import run_pages, table_page
from rindices.pages.server.page import NotYet
from rindices.pages.server.query import Desk

PEOPLE, REGIONS = 5_000, 200
ROLES = "covariates=age&covariates=sex&site=site"
PAGES = {
    "runs": (run_pages.runs_page, ""),
    "table": (table_page.table_page, "table=people.csv"),
    "table, checked": (table_page.checked_part, "table=people.csv"),
    "table, role changed": (
        table_page.checked_part,
        f"table=people.csv&chosen=yes&{ROLES}&column=region5&role=no%20role",
    ),
    "result": (run_pages.run_page, "run=run"),
    "people": (run_pages.people_page, "run=run"),
}


def write_people(path: Path, n_people: int) -> None:
    """Write a table of random people in two groups at four sites."""
    rng = np.random.default_rng(0)
    regions = 5 + 0.5 * rng.standard_normal((n_people, REGIONS))
    patient = np.arange(n_people) % 2 == 1
    regions[patient, :20] -= 0.5 * rng.random((patient.sum(), 1))
    table = pd.DataFrame(regions, columns=[f"region{k}" for k in range(REGIONS)])
    table.insert(0, "participant_id", [f"person{k:05d}" for k in range(n_people)])
    table.insert(1, "diagnosis", np.where(patient, "PT", "CN"))
    table = table.assign(age=rng.uniform(50, 80, n_people), sex=rng.integers(0, 2, n_people))
    table.assign(site=rng.choice(list("ABCD"), n_people)).to_csv(path, index=False)


def main() -> None:
    """Make a table and a run, and request each page twice."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--people", type=int, default=PEOPLE)
    chosen = options.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_people(folder / "people.csv", chosen.people)
        columns, search = (
            TableSettings(covariates="age,sex", site="site"),
            SearchSettings(n_repetitions=3, max_steps=100),
        )
        fit_table(folder / "people.csv", folder / "run", columns, search, OutputSettings(report=False))
        desk = Desk(folder, on_command_line, ())
        for page, (answer, query) in PAGES.items():
            scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": []}
            took = []
            for clock in (time.process_time, time.thread_time):  # the first response is prepared in another thread
                began = clock()
                while True:
                    try:
                        answer(desk, Request(scope))
                        break
                    except NotYet:
                        continue
                took.append(1000 * (clock() - began))
            rows.append({"page": page, "first_ms": took[0], "again_ms": took[1]})
            print(f"{page:20s} {took[0]:8.0f} ms, again {took[1]:6.0f} ms", flush=True)
    pd.DataFrame(rows).assign(people=chosen.people, regions=REGIONS).to_csv(
        chosen.out, index=False, float_format="%.1f"
    )


if __name__ == "__main__":
    main()
