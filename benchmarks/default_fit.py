"""Time of a default fit from the table to the report, in a new process each time. Intended for a GPU.

    python benchmarks/default_fit.py --out results/default_fit.csv

10 repetitions, 1392 people x 128 regions. The first run compiles; the others find its programs in the cache. Two fits
in one more process follow, as in a notebook: the second (`again`) finds libraries and programs loaded. Neutral names of
regions keep the report from drawing brains, which needs nilearn and takes the same time on any device.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from rindices import simulate_cohort
from rindices.core import devices

RUN = "from rindices.cli import main; main()"
TWICE = """
import sys, time
from rindices.run.fit_table import fit_table
for number in (1, 2):
    began = time.perf_counter()
    fit_table(sys.argv[1], f"{sys.argv[2]}/twice{number}")
    print(time.perf_counter() - began)
"""
# Samples all threads twenty times a second: work is done in threads, which profilers do not follow.
PROFILED = """
import atexit, collections, sys, threading, time
found = collections.Counter()
def look():
    while True:
        time.sleep(0.05)
        for frame in list(sys._current_frames().values()):
            names = []
            while frame is not None:
                path = frame.f_code.co_filename
                if "rindices/" in path or "backend_compile" in frame.f_code.co_name:
                    names.append(path.rsplit("rindices/")[-1].rsplit("site-packages/")[-1] + ":" + frame.f_code.co_name)
                frame = frame.f_back
            for name in set(names):
                found[name] += 0.05
def say():
    for name, seconds in found.most_common(70):
        print(f"{seconds:7.2f} s  {name}", file=sys.stderr)
atexit.register(say)
threading.Thread(target=look, daemon=True).start()
from rindices.cli import main
main()
"""


def main() -> None:
    """Time several fits."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--profile", action="store_true", help="say in the last run where the time goes")
    options.add_argument("--options", nargs="*", default=[], help="more of `rindices fit`, without the dashes")
    chosen = options.parse_args()
    table = simulate_cohort("basic", seed=20).table.drop(columns=["age", "sex"])
    regions = table.columns[2:]
    table = table.rename(columns={name: f"region{k:03d}" for k, name in enumerate(regions)})
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        table.to_csv(path, index=False)
        for number in range(chosen.runs):
            profiled = chosen.profile and number == chosen.runs - 1
            command = [sys.executable, "-c", PROFILED if profiled else RUN]
            command += ["fit", str(path), "--out", f"{folder}/run{number}"]
            began = time.perf_counter()
            with_options = [f"--{name}" if not name[0].isdigit() else name for name in chosen.options]
            done = subprocess.run([*command, *with_options], capture_output=True, text=True, env=os.environ)
            seconds = time.perf_counter() - began
            report = Path(folder) / f"run{number}" / "report.html"
            said = done.stderr if profiled else done.stderr[-600:]
            print(done.stdout[-600:], said, f"exit {done.returncode}, {seconds:.1f} s", flush=True)
            kind = "cold" if number == 0 else "profiled" if profiled else "warm"
            row = {"run": kind, "seconds": seconds, "exit": done.returncode}
            rows.append(row | {"report": report.exists()})
        command = [sys.executable, "-c", TWICE, str(path), folder]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
        print(done.stdout, done.stderr[-600:], flush=True)
        for kind, seconds in zip(("warm, in Python", "again"), map(float, done.stdout.split()), strict=True):
            rows.append({"run": kind, "seconds": seconds, "exit": done.returncode, "report": True})
    # Not earlier, because this process would occupy the device's memory.
    found = pd.DataFrame(rows).assign(device=devices.describe().kind)
    found.to_csv(chosen.out, index=False, float_format="%.3f")


if __name__ == "__main__":
    main()
