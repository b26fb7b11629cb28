"""A pickle read as data: a small stack machine that can make containers, numbers and text, and nothing else.

Python's own `pickle.Unpickler` can be told which classes to find, but its other instructions still call what they
find (``__setstate__``, ``__new__``, ``append``), and one short instruction can make it reserve gigabytes. Here every
instruction that is obeyed is written out, nothing is ever imported or looked up, and a call reaches only functions of
ours. What is not written out is refused by name: also what torch never writes, as newer protocols than the second.
"""

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rindices.problems import InputError

MOST_INSTRUCTIONS = 1_000_000  # a checkpoint with one entry has about 3,000
_LARGEST_KEY = 2**31

Calls = Mapping[str, Callable[..., Any] | None]  # our functions by the names of others'; None: mentioned, never called


class ArchiveError(InputError):
    """A checkpoint that cannot be used; the message says why. Nothing in it was run."""


@dataclass(frozen=True)
class Name:
    """The dotted name of a function or class that a pickle mentions; only a text, never the thing itself."""

    text: str


@dataclass(eq=False)
class Unfinished:
    """An array of which a pickle has said that it will come, but not yet its shape and contents."""

    finished: Any = None


def run_pickle(data: bytes, calls: Calls, finish: Callable[[Any, Any], Any], load: Callable[[Any], Any]) -> Any:
    """Return what a pickle describes.

    Parameters
    ----------
    data
        The pickle.
    calls
        Dotted names that it may mention, with our own functions for those that it may call.
    finish
        Takes an object and its state, and returns the object with the state put in.
    load
        Takes the description of a stored array and returns it.

    Raises
    ------
    ArchiveError
        If it asks for anything else, is damaged, or is too long.

    Examples
    --------
    >>> import pickle
    >>> nothing = {}, lambda thing, state: thing, lambda key: key
    >>> run_pickle(pickle.dumps({"a": [1, 2.5, None]}, protocol=2), *nothing)
    {'a': [1, 2.5, None]}
    >>> run_pickle(pickle.dumps(print, protocol=2), *nothing)
    Traceback (most recent call last):
    rindices.interop.pickle_machine.ArchiveError: it wants to use __builtin__.print
    """
    machine = _Machine(calls, finish, load)
    try:
        for number, (instruction, argument, position) in enumerate(pickletools.genops(data)):
            if number >= MOST_INSTRUCTIONS:
                raise ArchiveError(f"its pickle has more than {MOST_INSTRUCTIONS} instructions")
            if instruction.name == "STOP" and position != len(data) - 1:
                raise ArchiveError("there is something after the end of its pickle")
            if instruction.name != "STOP":
                machine.obey(instruction.name, argument)
    except ArchiveError:
        raise
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ArchiveError(f"its pickle is damaged ({plain(error)})") from error
    if machine.below or len(machine.stack) != 1:
        raise ArchiveError("its pickle is truncated")
    return machine.stack[0]


def plain(text: object, limit: int = 80) -> str:
    """Return foreign text without control characters, and no more than a line of it.

    Never give it foreign containers: shared parts can make the text of a small one endless.
    """
    return ascii(str(text))[1:-1][:limit]


class _Machine:
    """The stack, the stacks below the marks, and the memo of one pickle."""

    def __init__(self, calls: Calls, finish: Callable[[Any, Any], Any], load: Callable[[Any], Any]) -> None:
        self.calls, self.finish, self.load = calls, finish, load
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def obey(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            value = _VALUES[name](self, argument)  # first, as it may leave another stack
            self.stack.append(value)
        elif name in _ACTIONS:
            _ACTIONS[name](self, argument)
        else:
            about = "" if argument is None else f" ({plain(argument)})"
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
        is_finished = isinstance(value, Unfinished) and value.finished is not None
        return value.finished if is_finished else value

    def name(self, argument: str) -> Name:
        dotted = argument.replace(" ", ".", 1)
        if dotted not in self.calls:
            raise ArchiveError(f"it tries to use {plain(dotted)}")
        return Name(dotted)

    def call(self, function: Any, arguments: Any) -> Any:
        called = self.calls[function.text] if isinstance(function, Name) else None
        if called is None or type(arguments) is not tuple:
            what = function.text if isinstance(function, Name) else f"a {type(function).__name__}"
            raise ArchiveError(f"it tries to call {what} in an unknown way")
        return called(*arguments)

    def build(self, thing: Any, state: Any) -> Any:
        finished = self.finish(thing, state)
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
    """Return keys and values. Keys that are deep or chosen to collide could stop the interpreter itself."""
    for key in items[::2]:
        if type(key) is not str and not (type(key) is int and abs(key) < _LARGEST_KEY):
            raise ArchiveError(f"it has a dictionary with a {type(key).__name__} as key")
    return dict(zip(items[::2], items[1::2], strict=True))


_Instruction = Callable[[_Machine, Any], Any]
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
_TEXTS = ("UNICODE", "BINUNICODE", "SHORT_BINBYTES", "BINBYTES")
# Instructions that put a value on the stack, and others.
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
    "PROTO": lambda *_: None,
    "MARK": lambda machine, _: machine.mark(),
    "POP": lambda machine, _: machine.take(1),
    "POP_MARK": lambda machine, _: machine.since_mark(),
    "APPEND": lambda machine, _: machine.fill(list, machine.take(1)),
    "APPENDS": lambda machine, _: machine.fill(list, machine.since_mark()),
    "SETITEM": lambda machine, _: machine.fill(dict, machine.take(2)),
    "SETITEMS": lambda machine, _: machine.fill(dict, machine.since_mark()),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Machine.put),
}
