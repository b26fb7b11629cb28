"""Check the archives made by `python -m build`: their contents, and that they work without a checkout.

python packaging/check_dist.py dist            everything, with two installations and two demonstrations: minutes
python packaging/check_dist.py dist --contents only the contents: seconds
"""

import argparse
import email.parser
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parent.parent
KINDS = {".py", ".pyi", ".csv", ".json", ".txt", ".j2", ".css", ".js", ".typed"}
IN_SDIST = ("tests/longevity/frozen/linear/model.safetensors", "packaging/Containerfile", "docs", "CITATION.cff")
ALWAYS = {"PKG-INFO", ".gitignore", "pyproject.toml"}  # added by hatch, with the readme and the licence
USER_SCRIPT = """
from rindices import SurrealGAN, load_model, read_cohort

cohort = read_cohort("table.csv", control="CN")
model: SurrealGAN = load_model("model.safetensors")
number: int = cohort.features.shape[0]
SurrealGAN(n_patterns="three")  # the one mistake
"""


def fail(what: str) -> NoReturn:
    """Exit with a message."""
    raise SystemExit(f"check_dist: {what}")


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a program without the checkout's environment; return its output, or exit with it if the program fails."""
    texts = [str(part) for part in command]
    away = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(texts, capture_output=True, text=True, check=False, env=away, cwd=cwd)
    if done.returncode:
        fail(f"{' '.join(texts)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_wheel(wheel: Path) -> None:
    """Check that the wheel contains the package, its licences and nothing else, and that its metadata are complete."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist()}
    about = next(name.partition("/")[0] for name in inside if name.endswith(".dist-info/METADATA"))
    source = ROOT / "src"
    files = [path for path in (source / "rindices").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    expected = {path.relative_to(source).as_posix(): path.read_bytes() for path in files}
    if odd := sorted(name for name in expected if Path(name).suffix not in KINDS):
        fail(f"files of unknown kinds in src/rindices: {odd}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    licences = [f"{about}/licenses/{name}" for name in project["license-files"]]
    of_wheel = {*licences, *(f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt"))}
    if difference := sorted({*inside} ^ {*expected, *of_wheel}):
        fail(f"the wheel has, or lacks, {difference}")
    if changed := sorted(name for name, content in expected.items() if inside[name] != content):
        fail(f"these files differ from the checkout: {changed}")
    told = email.parser.Parser().parsestr(inside[f"{about}/METADATA"].decode())
    for field in ("Name", "Version", "Summary", "License-Expression", "Requires-Python", "Description-Content-Type"):
        if not told[field]:
            fail(f"the metadata lack {field}")
    needed = [text for text in told.get_all("Requires-Dist", []) if "extra ==" not in text]
    if len(needed) != len(project["dependencies"]):
        fail(f"the wheel needs {needed}, pyproject.toml says {project['dependencies']}")
    print(f"{wheel.name}: {len(expected)} files of the package, {len(of_wheel)} about it, {len(needed)} dependencies")


def check_sdist(sdist: Path, wheel: Path) -> None:
    """Check what the source archive contains, and that wheels built from it and from the checkout are identical."""
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for wanted in IN_SDIST:
        if not any(name == wanted or name.startswith(f"{wanted}/") for name in names):
            fail(f"{sdist.name} lacks {wanted}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    include = {name.strip("/") for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    allowed = include | ALWAYS | {project["project"]["readme"], *project["project"]["license-files"]}
    if stray := sorted({name.partition("/")[0] for name in names} - allowed - {""}):
        fail(f"{sdist.name} also has {stray}")
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
        other = next(Path(folder).iterdir())
        if _digests(other) != _digests(wheel):
            fail(f"the wheel from {sdist.name} differs from the one from the checkout")
    print(f"{sdist.name}: {len(names)} entries; its wheel is that of the checkout")


def _digests(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def check_installed(archive: Path) -> None:
    """Install in an empty environment, run the demonstration (offline where possible) and check its results."""
    with tempfile.TemporaryDirectory() as folder:
        home, python = Path(folder), Path(folder, "venv", "bin", "python")
        run(sys.executable, "-m", "venv", home / "venv")
        run(python, "-m", "pip", "install", "--quiet", archive.resolve())
        place = run(python, "-c", "import rindices; print(rindices.__file__)", cwd=home).strip()
        if not place.startswith(folder):
            fail(f"rindices came from {place} instead of {folder}")
        alone = ["unshare", "--map-root-user", "--net"]
        offline = not subprocess.run([*alone, "true"], capture_output=True, check=False).returncode
        run(*(alone if offline else []), home / "venv" / "bin" / "rindices", "demo", "--out", home / "demo", cwd=home)
        check_results(home / "demo" / "run")
        check_types(python, home)
    print(f"{archive.name}: installed, demonstrated {'without a network' if offline else 'with a network'}, typed")


def check_results(folder: Path) -> None:
    """Check that the demonstration is complete: everybody's R-indices, the picture and the report."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    rows = (folder / "r_indices.csv").read_text(encoding="utf-8").splitlines()
    if summary["status"] != "done" or len(rows) != 1 + summary["n_controls"] + summary["n_patients"]:
        fail(f"the demonstration ended as {summary['status']} with {len(rows)} rows")
    for name, start in (("r_indices.png", b"\x89png"), ("report.html", b"<!doctype html")):
        if not (folder / name).read_bytes()[:20].lower().startswith(start):
            fail(f"{name} of the demonstration is not what it should be")


def check_types(python: Path, folder: Path) -> None:
    """Check that a type checker, given the installed package, finds the one mistake in a user's script."""
    script = folder / "script.py"
    script.write_text(USER_SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--python-executable", python, "--cache-dir", folder / "cache", script]
    told = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=folder, check=False)
    errors = [line for line in told.stdout.splitlines() if ": error:" in line]
    if len(errors) != 1 or "n_patterns" not in errors[0]:
        fail(f"expected one error of types, found:\n{told.stdout}{told.stderr}")


def main() -> None:
    """Check the archives in a folder."""
    parser = argparse.ArgumentParser(description="Check a wheel and a source archive.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--contents", action="store_true", help="only what is in them")
    given = parser.parse_args()
    wheels, sdists = sorted(given.folder.glob("*.whl")), sorted(given.folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        fail(f"expected one wheel and one source archive in {given.folder}, found {[*wheels, *sdists]}")
    run(sys.executable, "-m", "twine", "check", "--strict", *wheels, *sdists)
    check_wheel(wheels[0])
    check_sdist(sdists[0], wheels[0])
    if not given.contents:
        for archive in (*wheels, *sdists):
            check_installed(archive)


if __name__ == "__main__":
    main()
