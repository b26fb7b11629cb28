"""Torch's zip archives and the pickles in them, read as data without torch and without running anything.

Python's own `pickle.Unpickler` can be limited to certain classes, but its other instructions still call what they
find (``__setstate__``, ``__new__``, ``append``), and one short instruction can make it reserve gigabytes. Here, a small
stack machine builds containers, numbers and text. Every supported instruction is written out, nothing is ever imported
or looked up, and calls reach only functions of ours. Anything else is refused by name, including what torch never
writes, such as protocols newer than the second.

Torch never compresses the entries of an archive, and neither may they be compressed here: what is read cannot then be
larger than the file, whatever sizes it claims. A torch tensor is a window (offset, size, strides) on a stored block of
numbers; a NumPy array is a shape and bytes. Both become NumPy arrays through a few functions of ours, which check every
number against the bytes that exist before touching any memory.
"""

import math
import pickletools
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rindices.problems import InputError, one_line

MOST_INSTRUCTIONS = 1_000_000  # a checkpoint with one entry has about 3,000
_LARGEST_KEY = 2**31
Calls = Mapping[str, Callable[..., Any] | None]  # our functions by the names they replace; None: never called


class ArchiveError(InputError):
    """A checkpoint that cannot be used; the message says why. Nothing in it was run."""


@dataclass(frozen=True)
class Name:
    """The dotted name of a function or class that a pickle mentions; only text, never the thing itself."""

    text: str


@dataclass(eq=False)
class Unfinished:
    """An array that a pickle has announced, but whose shape and contents are still to come."""

    finished: Any = None


def run_pickle(data: bytes, calls: Calls, load: Callable[[Any], Any]) -> Any:
    """Return the object that a pickle describes.

    Parameters
    ----------
    data
        The pickle.
    calls
        Dotted names that it may mention, with our own functions for those that it may call.
    load
        Takes the description of a stored array and returns it.

    Raises
    ------
    ArchiveError
        If it asks for anything else, is damaged, or is too long.

    Examples
    --------
    >>> import pickle
    >>> run_pickle(pickle.dumps({"a": [1, 2.5, None]}, protocol=2), {}, lambda key: key)
    {'a': [1, 2.5, None]}
    >>> run_pickle(pickle.dumps(print, protocol=2), {}, lambda key: key)
    Traceback (most recent call last):
    rindices.interop.torch_archive.ArchiveError: it tries to use __builtin__.print
    """
    machine = _Machine(calls, load)
    try:
        for number, (instruction, argument, position) in enumerate(pickletools.genops(data)):
            if number >= MOST_INSTRUCTIONS:
                raise ArchiveError(f"its pickle has more than {MOST_INSTRUCTIONS} instructions")
            if instruction.name == "STOP" and position != len(data) - 1:
                raise ArchiveError("there are data after the end of its pickle")
            machine.obey(instruction.name, argument)
    except ArchiveError:
        raise
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ArchiveError(f"its pickle is damaged ({one_line(error)})") from error
    if machine.below or len(machine.stack) != 1:
        raise ArchiveError("its pickle is truncated")
    return machine.stack[0]


class _Machine:
    """The stack, the stacks below the marks, and the memo of one pickle."""

    def __init__(self, calls: Calls, load: Callable[[Any], Any]) -> None:
        self.calls, self.load = calls, load
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def obey(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            value = _VALUES[name](self, argument)  # evaluated first, as it may replace the stack
            self.stack.append(value)
        elif name in _ACTIONS:
            _ACTIONS[name](self, argument)
        else:
            about = "" if argument is None else f" ({one_line(argument)})"
            raise ArchiveError(f"it contains the pickle instruction {name}{about}, which is not needed for numbers")

    def take(self, number: int) -> list[Any]:
        return [self.stack.pop() for _ in range(number)][::-1]

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.below.pop()
        return items

    def put(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    def get(self, key: int) -> Any:
        value = self.memo[key]
        return value.finished if isinstance(value, Unfinished) and value.finished is not None else value

    def name(self, argument: str) -> Name:
        dotted = argument.replace(" ", ".", 1)
        if dotted not in self.calls:
            raise ArchiveError(f"it tries to use {one_line(dotted)}")
        return Name(dotted)

    def call(self, function: Any, arguments: Any) -> Any:
        called = self.calls[function.text] if isinstance(function, Name) else None
        if called is None or type(arguments) is not tuple:
            what = function.text if isinstance(function, Name) else f"a {type(function).__name__}"
            raise ArchiveError(f"it tries to call {what} in an unsupported way")
        return called(*arguments)

    def build(self, thing: Any, state: Any) -> Any:
        finished = _finish(thing, state)
        if isinstance(thing, Unfinished):
            thing.finished = finished
        return finished

    def fill(self, kind: type, items: list[Any]) -> None:
        match self.stack[-1]:
            case list() as target if kind is list:
                target.extend(items)
            case dict() as target if kind is dict:
                target.update(_pairs(items))
            case other:
                raise ArchiveError(f"it puts items into a {type(other).__name__}")


def _pairs(items: list[Any]) -> dict[Any, Any]:
    """Return a dictionary. Deeply nested keys, or keys chosen to collide, could bring down the interpreter."""
    for key in items[::2]:
        if type(key) is not str and not (type(key) is int and abs(key) < _LARGEST_KEY):
            raise ArchiveError(f"it has a dictionary with a key of type {type(key).__name__}")
    return dict(zip(items[::2], items[1::2], strict=True))


_Instruction = Callable[[_Machine, Any], Any]
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
_TEXTS = ("UNICODE", "BINUNICODE", "SHORT_BINBYTES", "BINBYTES")
# Instructions that push a value onto the stack, and others.
_VALUES: dict[str, _Instruction] = {
    **dict.fromkeys((*_NUMBERS, *_TEXTS), lambda _, argument: argument),
    "NONE": lambda *_: None,
    "NEWTRUE": lambda *_: True,
    "NEWFALSE": lambda *_: False,
    "EMPTY_TUPLE": lambda *_: (),
    "EMPTY_LIST": lambda *_: [],
    "EMPTY_DICT": lambda *_: {},
    "TUPLE1": lambda machine, _: tuple(machine.take(1)),
    "TUPLE2": lambda machine, _: tuple(machine.take(2)),
    "TUPLE3": lambda machine, _: tuple(machine.take(3)),
    "TUPLE": lambda machine, _: tuple(machine.since_mark()),
    "LIST": lambda machine, _: machine.since_mark(),
    "DICT": lambda machine, _: _pairs(machine.since_mark()),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
    "GLOBAL": _Machine.name,
    "REDUCE": lambda machine, _: machine.call(*machine.take(2)),
    "BUILD": lambda machine, _: machine.build(*machine.take(2)),
    "BINPERSID": lambda machine, _: machine.load(machine.stack.pop()),
}
_ACTIONS: dict[str, _Instruction] = {
    **dict.fromkeys(("PROTO", "STOP"), lambda *_: None),
    "MARK": lambda machine, _: machine.mark(),
    "POP": lambda machine, _: machine.take(1),
    "POP_MARK": lambda machine, _: machine.since_mark(),
    "APPEND": lambda machine, _: machine.fill(list, machine.take(1)),
    "APPENDS": lambda machine, _: machine.fill(list, machine.since_mark()),
    "SETITEM": lambda machine, _: machine.fill(dict, machine.take(2)),
    "SETITEMS": lambda machine, _: machine.fill(dict, machine.since_mark()),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Machine.put),
}
MOST_BYTES = 1 << 28  # a published checkpoint has about 300 kB
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, OverflowError, RuntimeError, ValueError)
_MOST_AXES = 8
_MOST_TEXT_BYTES = 1 << 26  # arrays written as text, all together
_NUMPY_TYPES = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})
_STORAGES = {
    "torch.DoubleStorage": "<f8",
    "torch.FloatStorage": "<f4",
    "torch.HalfStorage": "<f2",
    "torch.LongStorage": "<i8",
    "torch.IntStorage": "<i4",
    "torch.ShortStorage": "<i2",
    "torch.CharStorage": "|i1",
    "torch.ByteStorage": "|u1",
    "torch.BoolStorage": "|b1",
}


def read_archive(path: str | Path) -> Any:
    """Return the contents of a torch checkpoint: dictionaries, lists, numbers, text and NumPy arrays.

    Parameters
    ----------
    path
        A file written by ``torch.save`` of torch 1.6 or later.

    Raises
    ------
    ArchiveError
        If the file holds anything but numbers and text in plain containers, is damaged, or is malicious.
        Nothing in it has been run.
    """
    path = Path(path)
    if not path.is_file():
        raise ArchiveError(f"There is no checkpoint at {path}.\nProvide a file written by torch.save.")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ArchiveError(f"{path} was not read: its size is {size:,} bytes, but at most {MOST_BYTES:,} are accepted.")
    try:
        with zipfile.ZipFile(path) as archive:
            return _Archive(archive, size).load()
    except ArchiveError as error:
        raise ArchiveError(f"{path} was not read: {error}.\nNo code in it was run.") from error
    except _BAD_ZIP as error:
        raise ArchiveError(
            f"{path} is truncated, damaged, or not a zip archive of the kind that torch has written since version 1.6 "
            f"({one_line(error)}).\nCopy it again. If it is an older checkpoint that you trust, load "
            "it in torch and save it again."
        ) from error


@dataclass(frozen=True, eq=False)
class _Stored:
    """A stored block of numbers, before a tensor has given it a shape."""

    numbers: np.ndarray


class _Archive:
    """An open archive; nothing in it is ever written to disk, so that names of entries can do no harm."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self.archive = archive
        self.blocks: dict[str, np.ndarray] = {}
        self.text_bytes = 0  # created from text so far
        self.entries = {entry.filename: entry for entry in archive.infolist()}
        if len(self.entries) != len(archive.infolist()):
            raise ArchiveError("two of its entries have the same name")
        for name, entry in self.entries.items():
            if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
                raise ArchiveError(f"its entry {one_line(name)} is compressed, but torch never compresses entries")
        if sum(entry.file_size for entry in self.entries.values()) > size:
            raise ArchiveError("its entries claim to be larger than the file")
        pickles = [name for name in self.entries if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ArchiveError(f"it should contain exactly one folder with a data.pkl file, but it has {len(pickles)}")
        self.folder = pickles[0].removesuffix("/data.pkl")

    def load(self) -> Any:
        """Read the pickle, and through it the stored tensors."""
        order = self.read("byteorder") if f"{self.folder}/byteorder" in self.entries else b"little"
        if order != b"little":
            raise ArchiveError(
                f"its numbers are stored in byte order {one_line(order.decode('latin1'))}, but only little-endian "
                "numbers can be read"
            )
        return run_pickle(self.read("data.pkl"), {**_CALLS, "_codecs.encode": self.encode}, self.block)

    def read(self, name: str) -> bytes:
        """Return the bytes of one entry; `zipfile` verifies its checksum."""
        entry = self.entries.get(f"{self.folder}/{name}")
        if entry is None:
            raise ArchiveError(f"its entry {one_line(name)} is missing")
        return self.archive.read(entry)

    def block(self, description: Any) -> _Stored:
        """Return a stored block, described as (``storage``, type, key, device, number of items)."""
        match description:
            case ("storage", Name(kind), str(key), _, int(n_items)) if kind in _STORAGES:
                dtype = np.dtype(_STORAGES[kind])
            case _:
                raise ArchiveError("it describes a stored tensor in an unsupported way")
        if key not in self.blocks:
            data = self.read(f"data/{key}")
            if len(data) != n_items * dtype.itemsize:
                raise ArchiveError(
                    f"tensor data {one_line(key)} should contain {n_items} numbers of {dtype.itemsize} bytes each, "
                    f"but {len(data)} bytes are stored"
                )
            self.blocks[key] = np.frombuffer(data, dtype)
        block = self.blocks[key]
        if block.dtype != dtype or len(block) != n_items:
            raise ArchiveError(f"tensor data {one_line(key)} is described in two ways")
        return _Stored(block)

    def encode(self, text: Any, encoding: Any = None) -> bytes:
        """Return bytes that an old pickle had to write as text."""
        if type(text) is not str or encoding != "latin1":
            raise ArchiveError("it tries to use _codecs.encode for something other than bytes")
        self.text_bytes += len(text)
        if self.text_bytes > _MOST_TEXT_BYTES:
            raise ArchiveError(f"it creates more than {_MOST_TEXT_BYTES} bytes of text")
        return text.encode("latin1")


def _number_type(text: Any = None, *_: Any) -> np.dtype:
    if type(text) is not str or text not in _NUMPY_TYPES:
        kind = text if type(text) is str else type(text).__name__
        raise ArchiveError(f"it contains an array of numpy type {one_line(kind)}, but only plain numbers can be read")
    return np.dtype(text).newbyteorder("<")


def _finish(thing: Any, state: Any) -> Any:
    """Return an object with its state set; only arrays, their types and dictionaries can have one."""
    match thing, state:
        case Unfinished(finished=None), (_, shape, dtype, bool(by_columns), data):
            return _from_bytes(dtype, data, shape, "F" if by_columns else "C")
        case np.dtype(), (_, "<" | "|", None, None, None, *_):  # no other byte order, and no fields
            return thing
        case dict(), dict():
            return thing  # torch's record of the versions of layers
    raise ArchiveError(f"it tries to set the state of a {type(thing).__name__} in an unsupported way")


def _from_bytes(dtype: Any, data: Any, shape: Any, order: Literal["C", "F"] = "C") -> np.ndarray:
    if not isinstance(dtype, np.dtype) or type(data) is not bytes:
        raise ArchiveError("it contains a numpy array of something other than plain numbers")
    _check_counts(shape)
    return np.frombuffer(data, dtype).reshape(shape, order=order)


def _tensor(stored: Any = None, offset: Any = None, size: Any = None, strides: Any = None, *_: Any) -> np.ndarray:
    if not isinstance(stored, _Stored) or not _is_count(offset):
        raise ArchiveError("it describes a tensor in an unsupported way")
    _check_counts(size)
    _check_counts(strides)
    numbers, n_numbers = stored.numbers, math.prod(size)
    last = offset + sum((length - 1) * stride for length, stride in zip(size, strides, strict=True))
    # Strides of 0 could yield more numbers than are stored: a small file could fill the memory.
    if n_numbers and (last >= len(numbers) or n_numbers > len(numbers)):
        raise ArchiveError(
            f"a tensor of size {one_line(size)}, strides {one_line(strides)} and offset {offset} "
            f"does not fit in {len(numbers)} stored numbers"
        )
    steps = [stride * numbers.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(numbers[offset:], size, steps, writeable=False)


def _check_counts(numbers: Any) -> None:
    if type(numbers) is not tuple or len(numbers) > _MOST_AXES or not all(map(_is_count, numbers)):
        raise ArchiveError("the shape of an array is not a tuple of a few non-negative integers")


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**48


_CALLS: Calls = {
    "collections.OrderedDict": lambda: {},  # noqa: PIE807 (`dict` would take pairs, and not look at their keys)
    "numpy.dtype": _number_type,
    "numpy.ndarray": None,
    "numpy.core.multiarray._reconstruct": lambda *_: Unfinished(),
    "numpy.core.multiarray.scalar": lambda dtype=None, data=None: _from_bytes(dtype, data, ())[()],
    "numpy._core.multiarray._reconstruct": lambda *_: Unfinished(),  # since NumPy 2
    "numpy._core.multiarray.scalar": lambda dtype=None, data=None: _from_bytes(dtype, data, ())[()],
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
    **dict.fromkeys(_STORAGES),
}
