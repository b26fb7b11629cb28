"""Python's audit events while a process is watched: connections, unpickling, compiled texts, programs."""

import _pickle
import contextlib
import pickle
import sys
import threading
import traceback

_CONNECTIONS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg")
_LOOPBACK = ("127.0.0.1", "::1")
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.startfile")
_IMPORTING, _listeners = "<frozen importlib._bootstrap_external>", []


def _hook(event, args):
    for listener in _listeners:
        listener(event, args)


sys.addaudithook(_hook)  # audit hooks cannot be removed


@contextlib.contextmanager
def reported_to(listener):
    """Pass each audit event to a function; if that raises, the event is prevented."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class Watch:
    """Events while it is on, except those of threads left by earlier tests, which may end at any time."""

    def __init__(self):
        self.connections, self.unpickled, self.compiled, self.programs = [], [], [], []
        self._left = {one.ident: one for one in threading.enumerate() if one is not threading.current_thread()}

    def minds(self):
        """Return whether events in this thread count."""
        left = self._left.get(threading.get_ident())
        return left is None or not left.is_alive()

    def note(self, event, args):
        """Record an event that matters; block the network."""
        if not self.minds():
            return
        # On import, a library binds and closes a socket of this machine to see whether IPv6 is available.
        outside = event == "socket.bind" and isinstance(args[1], tuple) and args[1][0] not in _LOOPBACK
        if event in _CONNECTIONS or outside:
            self.connections.append((event, args[1:], where()))
            raise ConnectionError("the network is closed")
        if event == "pickle.find_class":
            self.unpickled.append((args, where()))
        elif event == "marshal.loads" and sys._getframe(2).f_code.co_filename != _IMPORTING:
            self.unpickled.append((event, where()))
        elif event == "compile":
            self.compiled.append(args[0])
        elif event in _PROGRAMS:
            self.programs.append((event, args[:2], where()))


def where():
    """Return the last calls before the event."""
    return [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_stack(limit=12)[:-3]]


@contextlib.contextmanager
def watching(monkeypatch):
    """Watch all events within the context, in which nothing can connect."""
    watch = Watch()

    def reported(name, function):
        def load(*args, **kwargs):
            if watch.minds():
                watch.unpickled.append((name, where()))
            return function(*args, **kwargs)

        return load

    # Lists of numbers need no class, so they raise no event: all entry points of pickle are watched as well.
    for module, names in ((pickle, ("load", "loads", "Unpickler", "_load", "_loads")), (_pickle, ("load", "loads"))):
        for name in names:
            monkeypatch.setattr(module, name, reported(name, getattr(module, name)))
    monkeypatch.setattr(pickle._Unpickler, "load", reported("_Unpickler", pickle._Unpickler.load))
    with reported_to(watch.note):
        yield watch
