"""Ask whether known vulnerabilities are in what is installed here, and say so when nobody could be asked.

pip-audit ends with 0 when a mirror of PyPI does not know about vulnerabilities and every package was skipped. This ends
with 0 only when every package was looked up and none is affected, with 1 when one is, and with 2 when some could not be
looked up.
"""

import json
import subprocess
import sys

COMMAND = ["-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner", "off", "--format", "json"]


def verdict(report: dict) -> tuple[int, str]:
    """Return the exit code and what to print about a report of pip-audit."""
    packages = report["dependencies"]
    affected = [one for one in packages if one.get("vulns")]
    unknown = [one["name"] for one in packages if "skip_reason" in one and "editable" not in one["skip_reason"]]
    asked = sum("vulns" in one for one in packages)
    lines = [
        f"{one['name']} {one['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no version yet'}"
        for one in affected
        for flaw in one["vulns"]
    ]
    if unknown:
        lines.append(f"NOT CHECKED: nothing could be learned about {len(unknown)} packages: {', '.join(unknown)}.")
        lines.append("Use an index that tells vulnerabilities, as the Python Package Index does.")
    lines.append(f"{asked} packages checked, {len(affected)} affected.")
    return 1 if affected else 2 if unknown or not asked else 0, "\n".join(lines)


def main() -> int:
    """Run pip-audit with the options given and judge what it says."""
    done = subprocess.run([sys.executable, *COMMAND, *sys.argv[1:]], capture_output=True, text=True, check=False)
    try:
        code, words = verdict(json.loads(done.stdout))
    except (ValueError, KeyError):  # it has no exit code of its own for this
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        code, words = 2, f"NOT CHECKED: the vulnerability service could not be asked.\n{last}"
    print(words)
    return code


if __name__ == "__main__":
    sys.exit(main())
