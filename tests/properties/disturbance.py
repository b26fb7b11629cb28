"""A process that is killed between any two changes of its files, and a disk that is full for a while."""

import errno
import os
import shutil
from pathlib import Path

from rindices import files


class Killed(Exception):
    """The process would be gone by now."""


class Disturbance:
    """Watches the changes of files in a run folder; at one of them something happens.

    A file that is written gives three moments: before it is flushed, before it is renamed, and after; a file that is
    removed gives one.
    """

    def __init__(self, monkeypatch, folder, moment):
        self.folder, self.left, self.happened = Path(folder), moment, False
        monkeypatch.setattr(os, "unlink", self._watched(os.unlink, "remove"))
        monkeypatch.setattr(Path, "replace", self._watched(Path.replace, "rename"))
        monkeypatch.setattr(files, "_flush", self._watched(files._flush, "flush"))

    def _watched(self, function, change):
        def changed(path, *args, **kwargs):
            # Within a folder that is removed as a whole, files are named without it.
            if "dir_fd" in kwargs or (self.folder in (Path(path), *Path(path).parents) and Path(path).exists()):
                self.left -= 1
                if self.left < 0:
                    self.strike(Path(path), change)
            return function(path, *args, **kwargs)

        return changed

    def strike(self, path, change):
        """Let it happen, when a file is about to be flushed, renamed or removed."""
        raise NotImplementedError


class Kill(Disturbance):
    """Keeps the folder as it was at the moment, and lets the command end as it may.

    With `torn`, what was not yet flushed reached the disk in half.
    """

    def __init__(self, monkeypatch, folder, moment, torn):
        super().__init__(monkeypatch, folder, moment)
        self.torn, self.snapshot = torn, folder.with_name("snapshot")

    def strike(self, path, change):
        """Stop at the first moment; the others are those of a process that is no more."""
        if self.happened:
            return
        self.happened = True
        shutil.copytree(self.folder, self.snapshot)
        half = self.snapshot / path.relative_to(self.folder) if change == "flush" else self.snapshot
        if self.torn and half.is_file():
            os.truncate(half, half.stat().st_size // 2)
        raise Killed

    def bury(self):
        """Put the folder back as the kill left it."""
        if self.happened:
            shutil.rmtree(self.folder)
            self.snapshot.rename(self.folder)


class FullDisk(Disturbance):
    """Writes fail, a number of times; removing files works."""

    def __init__(self, monkeypatch, folder, moment, times):
        super().__init__(monkeypatch, folder, moment)
        self.times = times

    def strike(self, path, change):
        """Fail like a disk without space."""
        if change != "remove" and path.name.endswith(".partial") and self.times:
            self.times -= 1
            self.happened = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
