"""The reader of model files: no score changes silently, and nothing but a `ModelFileError` comes of damage."""

import contextlib
import copy
import hashlib
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import typer
from safetensors.numpy import load

from rindices import InputError, SurrealGAN, load_model
from rindices.cli.models import describe
from rindices.cohort import Contract, check_people
from rindices.judging.agreement import Agreement
from rindices.model.file import ModelFileError, read_header
from rindices.preprocessing import Preprocessing
from rindices.settings import Correction, fast
from tests.fuzz.engine import Case, Failure, deep_stack
from tests.fuzz.mutations import chance, damaged, pick
from tests.made_up import N_REGIONS, weights

N_PEOPLE = 80
# Entries of the header that scores follow from; a change of any other must leave every score as it is.
DECISIVE = (("preprocessing",), ("parameters", "inference"), ("contract", "features"), ("named",))
ODD_VALUES = (
    *(None, True, False, 0, 1, -1, 2, 3, 1.5, -0.0, 1e308, 10**40, 10**400, float("nan"), float("inf"), -(2**63)),
    *("", "text", "NaN", "3", "\ud800", "\x00", "é", "北京", "A" * 1000, [], {}, [[]], [None], [1], ["a"], [1, "a"]),
    *({"a": 1}, {"": None}, [["age", None, None]], [["age", ["A"], None]], ["age", 1.0], [[0, "why"]], [["x", "why"]]),
)
DEEP = "@deep@"  # stands for brackets that are too many to be written by `json`


class Models:
    """A model that corrects in every way, damaged, and forged under a checksum that fits."""

    def __init__(self) -> None:
        model, regions, covariates = _made_up_model()
        with tempfile.TemporaryDirectory() as folder:
            path = model.save(Path(folder, "model.safetensors"))
            self.content = path.read_bytes()
            self.scores = load_model(path).transform(regions, covariates)
        self.header_end = 8 + int.from_bytes(self.content[:8], "little")
        self.metadata = json.loads(self.content[8 : self.header_end])["__metadata__"]
        self.header = json.loads(self.metadata["header"])
        self.arrays = load(self.content)
        self.table = pd.concat([regions, covariates], axis=1).rename_axis("participant_id")
        self.n_systematic = self.header_end + 64

    def make(self, number: int, rng: np.random.Generator) -> Case:
        """Cut at each byte of the header, flip each bit of its length, then draw."""
        if number < self.header_end:
            return _case(self.content[:number], f"cut at {number}")
        if number < self.n_systematic:
            length = int.from_bytes(self.content[:8], "little") ^ (1 << (number - self.header_end))
            return _case(length.to_bytes(8, "little") + self.content[8:], f"length {length}")
        kinds = [self._damaged, self._outer, self._header, self._header, self._header_text, self._arrays]
        return pick(rng, kinds)(rng)

    def _damaged(self, rng: np.random.Generator) -> Case:
        low, high = pick(rng, [(0, 8), (8, self.header_end), (self.header_end, len(self.content))])
        if chance(rng, 0.5):
            content, place = bytearray(self.content), int(rng.integers(low, high))
            content[place] ^= 1 << int(rng.integers(8))
            return _case(bytes(content), f"bit flipped at {place}")
        return _case(*damaged(self.content, rng, low, high))

    def _outer(self, rng: np.random.Generator) -> Case:
        """Edit what safetensors itself says about the arrays; the checksum is left as it is."""
        outer = json.loads(self.content[8 : self.header_end])
        names = [name for name in outer if name != "__metadata__"]
        first, second = (names[int(place)] for place in rng.choice(len(names), 2, replace=False))
        what = pick(rng, ["swap", "offsets", "shape", "dtype", "metadata", "entry", "length"])
        if what == "swap":
            same = [name for name in names if outer[name]["shape"] == outer[first]["shape"]]
            second = pick(rng, same)
            outer[first], outer[second] = outer[second], outer[first]
        elif what == "offsets":
            others = outer[second]["data_offsets"]
            outer[first]["data_offsets"] = pick(rng, [[0, 2**60], [-8, 0], [2**64, 2**65], [0], others])
        elif what == "shape":
            turned = outer[first]["shape"][::-1]
            outer[first]["shape"] = pick(rng, [[2**60], [0, 2**62], [-1], [1.5], [2**32, 2**32], turned])
        elif what == "dtype":
            outer[first]["dtype"] = pick(rng, ["F16", "BF16", "I64", "F8_E4M3", "C64", "BOOL", "object", "", None])
        elif what == "metadata":
            name = pick(rng, list(outer["__metadata__"]))
            outer["__metadata__"][name] = pick(rng, ODD_VALUES)
        elif what == "entry":
            outer[first] = pick(rng, ODD_VALUES)
        text = json.dumps(outer).encode("utf-8", "surrogatepass")
        length = pick(rng, [2**60, 2**63, 2**64 - 1, 10**8, len(text) + 1]) if what == "length" else len(text)
        content = length.to_bytes(8, "little") + text + self.content[self.header_end :]
        return _case(content, f"safetensors {what} {first}")

    def _header(self, rng: np.random.Generator) -> Case:
        """Edit some entries of the header, and make the checksum fit."""
        header, words, decisive = copy.deepcopy(self.header), [], False
        for _ in range(1 if chance(rng, 0.8) else int(rng.integers(2, 5))):
            path = pick(rng, list(_paths(header)))
            words.append(_edit(header, path, rng))
            decisive |= any(path[: len(key)] == key[: len(path)] for key in DECISIVE)
        text = json.dumps(header, ensure_ascii=True)
        if DEEP in text:
            text = text.replace(f'"{DEEP}"', "[" * deep_stack() + "]" * deep_stack())
        return _case(self._sealed(text), *words, same=not decisive)

    def _header_text(self, rng: np.random.Generator) -> Case:
        """Damage the header's text, and make the checksum fit."""
        text, words = damaged(self.metadata["header"].encode(), rng)
        if chance(rng, 0.1):
            text = pick(rng, [b"[", b'{"a":', b" ", b"-", b"9", b'"']) * int(10 ** rng.uniform(1, 6))
            words = "a long text"
        return _case(self._sealed(text.decode("utf-8", "replace")), "header", words, same=False)

    def _arrays(self, rng: np.random.Generator) -> Case:
        """Replace an array by another one, and make the checksum fit."""
        name = pick(rng, list(self.arrays))
        array = self.arrays[name].copy()
        changes = {
            "another type": lambda: array.astype(pick(rng, ["f2", "f4", "f8", "i8", "u1", "bool", "c8"])),
            "another shape": lambda: pick(rng, [array[..., :-1], array[None], array.T, array.ravel(), array[:0]]),
            "one number": lambda: _with(array, rng, pick(rng, [np.nan, np.inf, 0.0, -1.0, 1e38, 1e-38])),
            "all numbers": lambda: array * pick(rng, [0.0, -1.0, np.nan, 1e30]),
            "that of another": lambda: self.arrays[pick(rng, list(self.arrays))],
            "nothing": lambda: None,
        }
        what = pick(rng, list(changes))
        with np.errstate(all="ignore"):
            arrays = self.arrays | {name: changes[what]()}
        if chance(rng, 0.1):
            arrays[pick(rng, ["extra", "site.kept.extra", "", "scaler"])] = array
        arrays = {key: np.ascontiguousarray(one) for key, one in arrays.items() if one is not None}
        return _case(self._sealed(self.metadata["header"], arrays), f"{name} replaced: {what}", same=False)

    def _sealed(self, header: str, arrays: dict[str, np.ndarray] | None = None) -> bytes:
        """Return a model file under a checksum that fits: the header, then each array's name, type, shape and bytes."""
        arrays = self.arrays if arrays is None else arrays
        digest = hashlib.sha256(header.encode())
        for name, array in sorted(arrays.items()):
            digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
        return _written(arrays, self.metadata | {"header": header, "sha256": digest.hexdigest()})

    def judge(self, case: Case, path: Path) -> str:
        """Describe the model, load it and score people with it."""
        try:
            header = read_header(path)
        except ModelFileError:
            header = None
        else:
            _describe(path)
        try:
            model = load_model(path)
        except ModelFileError:
            return "refused"
        if header is None:
            raise Failure("the model was loaded, but its header cannot be read")
        try:
            people = check_people(self.table, model.contract_)
            with np.errstate(all="ignore"):
                scores = model.transform(people.features, people.covariates)
        except InputError:
            return "refused"
        if case.expected and not np.array_equal(scores, self.scores):
            raise Failure("the scores changed")
        if scores.dtype != np.float64 or scores.shape[0] != N_PEOPLE:
            raise Failure(f"scores of type {scores.dtype} and shape {scores.shape}")
        return "read"


def _written(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """Return a safetensors file; the library would write its parts in any order."""
    entries, data = {"__metadata__": metadata}, b""
    for name, array in arrays.items():
        place = [len(data), len(data) + array.nbytes]
        entries[name] = {"dtype": _TYPES[array.dtype.str[1:]], "shape": array.shape, "data_offsets": place}
        data += array.tobytes()
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


_TYPES = {"f2": "F16", "f4": "F32", "f8": "F64", "i8": "I64", "u1": "U8", "b1": "BOOL", "c8": "C64"}


def _case(content: bytes, *words: str, same: bool = True) -> Case:
    return Case("model.safetensors", content, words, same)


def _made_up_model() -> tuple[SurrealGAN, pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    names = [f"region{number}" for number in range(N_REGIONS)]
    regions = pd.DataFrame(rng.normal(3000, 300, (N_PEOPLE, N_REGIONS)), columns=names)
    covariates = pd.DataFrame({"age": rng.uniform(50, 90, N_PEOPLE), "sex": ["F", "M"] * (N_PEOPLE // 2)})
    covariates = covariates.assign(icv=rng.normal(1500, 90, N_PEOPLE), site=["A", "A", "B", "北京"] * (N_PEOPLE // 4))
    correction = Correction(smooth=["age"], interactions=[("age", "sex")], proportion="icv", site="site")
    model = SurrealGAN(3, n_repetitions=3, preset=fast(), correction=correction, random_state=0)
    labels = {"control_labels": ("CN",), "patient_labels": ("AD",)}
    contract = Contract.of_people(regions, covariates, site_column="site", **labels)
    fitted = {
        "preset": fast(),
        "contract": contract,
        "models": weights(2),
        "preprocessing": Preprocessing.fit(regions.to_numpy(), covariates, correction),
        "members": [0, 2],
        "left_out": {1: "disagrees"},
        "agreement": Agreement(0.9, 0.8, np.nan),
        "correlation": np.eye(3),
        "step": 20_000,
        "reliability": (True, "They agree."),
        "seed": 0,
        "n_features_in": N_REGIONS,
        "feature_names_in": np.array(contract.features, dtype=object),
    }
    for name, value in fitted.items():
        setattr(model, f"{name}_", value)
    return model, regions, covariates


def _paths(tree, path=()):
    """Return the way to every entry of a tree of dictionaries and lists."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _edit(header, path, rng: np.random.Generator) -> str:
    *way, last = path
    parent = header
    for key in way:
        parent = parent[key]
    what = pick(rng, ["value", "value", "value", "gone", "twice", "shorter", "number", "deep"])
    if what == "gone":
        del parent[last]
    elif what == "twice" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[last]))
    elif what == "shorter" and isinstance(parent[last], list | str):
        parent[last] = parent[last][:-1]
    elif what == "number" and type(parent[last]) in (int, float):
        parent[last] = pick(rng, [-parent[last], 2 * parent[last], parent[last] + 1, str(parent[last]), [parent[last]]])
    elif what == "deep" and chance(rng, 0.2):
        parent[last] = DEEP
    else:
        parent[last] = copy.deepcopy(pick(rng, ODD_VALUES))
    return f"{'.'.join(map(str, path))} {what}"


def _with(array: np.ndarray, rng: np.random.Generator, value: float) -> np.ndarray:
    array.flat[int(rng.integers(array.size))] = value
    return array


def _describe(path: Path) -> None:
    """Print what the model says about itself, to nowhere, but in an encoding as a terminal has it."""
    nowhere = io.TextIOWrapper(io.BytesIO(), "utf-8")
    try:
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            describe(path)
            nowhere.flush()
    except typer.Exit as stop:
        if stop.exit_code != 2:
            raise Failure(f"describe failed: {stop.__cause__!r}") from stop
