"""Check the installed packages for known vulnerabilities, and say so if that was not possible.

pip-audit exits with 0 even if the index has no vulnerability data and every package was skipped. This script exits
with 0 only if every package was checked and none is affected, with 1 if any is affected, and with 2 if some could not
be checked.
"""

import json
import subprocess
import sys

COMMAND = ["-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner", "off", "--format", "json"]


def verdict(report: dict) -> tuple[int, str]:
    """Return the exit code and the message for a report of pip-audit."""
    packages = report["dependencies"]
    affected = [one for one in packages if one.get("vulns")]
    unknown = [one["name"] for one in packages if "skip_reason" in one and "editable" not in one["skip_reason"]]
    asked = sum("vulns" in one for one in packages)
    lines = [
        f"{one['name']} {one['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version yet'}"
        for one in affected
        for flaw in one["vulns"]
    ]
    if unknown:
        lines.append(f"NOT CHECKED: no vulnerability data for {len(unknown)} packages: {', '.join(unknown)}.")
        lines.append("Use an index that provides vulnerability data, such as the Python Package Index.")
    lines.append(f"{asked} packages checked, {len(affected)} affected.")
    return 1 if affected else 2 if unknown or not asked else 0, "\n".join(lines)


def main() -> int:
    """Run pip-audit with the given options and interpret its report."""
    done = subprocess.run([sys.executable, *COMMAND, *sys.argv[1:]], capture_output=True, text=True, check=False)
    try:
        code, words = verdict(json.loads(done.stdout))
    except (ValueError, KeyError):  # pip-audit has no exit code of its own for this
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        code, words = 2, f"NOT CHECKED: the vulnerability service could not be reached.\n{last}"
    print(words)
    return code


if __name__ == "__main__":
    sys.exit(main())
