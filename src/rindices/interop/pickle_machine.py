"""A pickle read as data: a small stack machine that can make containers, numbers and text, and nothing else.

Python's own `pickle.Unpickler` can be told which classes to find, but its other instructions still call what they
find (``__setstate__``, ``__new__``, ``append``), and one short instruction can make it reserve gigabytes. Here every
instruction that is obeyed is written out, nothing is ever imported or looked up, and a call reaches only functions of
ours. What is not written out is refused by name.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rindices.errors import InputError

__all__ = ["ArchiveError", "Name", "Rules", "Unfinished", "plain", "run_pickle"]

MOST_INSTRUCTIONS = 1_000_000  # a checkpoint with one entry has about 3,000
_LARGEST_KEY = 2**31


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


@dataclass(frozen=True)
class Rules:
    """What a pickle may mention, call, finish and load.

    Attributes
    ----------
    names
        Dotted names that may be mentioned.
    calls
        Our own functions for those of the names that may be called.
    finish
        Takes an object and its state, and returns the object with the state put in.
    load
        Takes the description of a stored array and returns it.
    """

    names: frozenset[str]
    calls: Mapping[str, Callable[..., Any]]
    finish: Callable[[Any, Any], Any]
    load: Callable[[Any], Any]


def run_pickle(data: bytes, rules: Rules) -> Any:
    """Return what a pickle describes.

    Parameters
    ----------
    data
        The pickle.
    rules
        What it may mention, call, finish and load.

    Raises
    ------
    ArchiveError
        If it asks for anything else, is damaged, or is too long.

    Examples
    --------
    >>> import pickle
    >>> nothing = Rules(frozenset(), {}, lambda thing, state: thing, lambda key: key)
    >>> run_pickle(pickle.dumps({"a": [1, 2.5, None]}), nothing)
    {'a': [1, 2.5, None]}
    >>> run_pickle(pickle.dumps(print), nothing)
    Traceback (most recent call last):
    rindices.interop.pickle_machine.ArchiveError: it wants to use builtins.print
    """
    machine = _Machine(rules)
    try:
        for number, (instruction, argument, position) in enumerate(pickletools.genops(data)):
            if number >= MOST_INSTRUCTIONS:
                raise ArchiveError(f"its pickle has more than {MOST_INSTRUCTIONS} instructions")
            if instruction.name == "STOP":
                if position != len(data) - 1:
                    raise ArchiveError("there is something after the end of its pickle")
                return machine.result()
            machine.obey(instruction.name, argument)
    except ArchiveError:
        raise
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ArchiveError(f"its pickle is damaged ({plain(error)})") from error
    raise ArchiveError("its pickle has no end")


def plain(text: object, limit: int = 80) -> str:
    """Return foreign text without control characters, and no more than a line of it.

    Never give it foreign containers: shared parts can make the text of a small one endless.
    """
    return ascii(str(text))[1:-1][:limit]


_LITERALS = frozenset(
    {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
    | {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"}
)
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}
_SHORT_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = frozenset({"PROTO", "FRAME"})


class _Machine:
    """The stack, the stacks below the marks, and the memo of one pickle."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def result(self) -> Any:
        if self.below or len(self.stack) != 1:
            raise ArchiveError("its pickle ends in the middle")
        return self.stack.pop()

    def obey(self, name: str, argument: Any) -> None:
        if name in _LITERALS:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _SHORT_TUPLES:
            self.stack.append(tuple(self.take(_SHORT_TUPLES[name])))
        elif name in _ACTIONS:
            _ACTIONS[name](self, argument)
        elif name not in _IGNORED:
            on_top = self.stack[-1].text if self.stack and isinstance(self.stack[-1], Name) else argument
            about = "" if on_top is None else f" ({plain(on_top)})"
            raise ArchiveError(f"it holds the pickle instruction {name}{about}, which is not needed for numbers")

    def take(self, number: int) -> list[Any]:
        return [self.stack.pop() for _ in range(number)][::-1]

    def mark(self, _: Any) -> None:
        self.below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.below.pop()
        return items

    def put(self, key: Any) -> None:
        self.memo[len(self.memo) if key is None else key] = self.stack[-1]

    def get(self, key: Any) -> None:
        value = self.memo[key]
        if isinstance(value, Unfinished) and value.finished is not None:
            value = value.finished
        self.stack.append(value)

    def name(self, argument: str | None) -> None:
        module, name = self.take(2) if argument is None else argument.split(" ", 1)
        if type(module) is not str or type(name) is not str:
            raise ArchiveError("it mentions something without a name")
        if f"{module}.{name}" not in self.rules.names:
            raise ArchiveError(f"it wants to use {plain(module)}.{plain(name)}")
        self.stack.append(Name(f"{module}.{name}"))

    def call(self, _: Any) -> None:
        function, arguments = self.take(2)
        if not isinstance(function, Name) or function.text not in self.rules.calls:
            what = function.text if isinstance(function, Name) else f"a {type(function).__name__}"
            raise ArchiveError(f"it wants to call {what}")
        if type(arguments) is not tuple:
            raise ArchiveError(f"it calls {function.text} without a tuple of arguments")
        self.stack.append(self.rules.calls[function.text](*arguments))

    def finish(self, _: Any) -> None:
        thing, state = self.take(2)
        finished = self.rules.finish(thing, state)
        if isinstance(thing, Unfinished):
            thing.finished = finished
        self.stack.append(finished)

    def load(self, _: Any) -> None:
        self.stack.append(self.rules.load(self.stack.pop()))

    def append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ArchiveError(f"it appends to a {type(target).__name__}")
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict:
            raise ArchiveError(f"it sets items of a {type(target).__name__}")
        target.update(_pairs(items))


def _pairs(items: list[Any]) -> dict[Any, Any]:
    """Return keys and values. Keys that are deep or chosen to collide could stop the interpreter itself."""
    for key in items[::2]:
        if type(key) is not str and not (type(key) is int and abs(key) < _LARGEST_KEY):
            raise ArchiveError(f"it has a dictionary with a {type(key).__name__} as key")
    return dict(zip(items[::2], items[1::2], strict=True))


_ACTIONS: dict[str, Callable[[_Machine, Any], Any]] = {
    "MARK": _Machine.mark,
    "POP": lambda machine, _: machine.take(1),
    "POP_MARK": lambda machine, _: machine.since_mark(),
    "TUPLE": lambda machine, _: _push(machine, tuple(machine.since_mark())),
    "LIST": lambda machine, _: _push(machine, machine.since_mark()),
    "DICT": lambda machine, _: _push(machine, _pairs(machine.since_mark())),
    "APPEND": lambda machine, _: machine.append(machine.take(1)),
    "APPENDS": lambda machine, _: machine.append(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.set_items(machine.take(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.since_mark()),
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.put,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.name,
    "REDUCE": _Machine.call,
    "BUILD": _Machine.finish,
    "BINPERSID": _Machine.load,
}


def _push(machine: _Machine, value: Any) -> None:
    machine.stack.append(value)
