"""A process that is killed between any two changes of its files, and a disk that is full for a while."""

import errno
import os
import shutil
from pathlib import Path


class Killed(Exception):
    """The process would be gone by now."""


class Disturbance:
    """Watches the changes of files in a run folder; from a moment on something happens before each of them.

    Moments are counted: a file that is written is renamed when it is whole, which is one; a file that is removed is
    another.
    """

    def __init__(self, monkeypatch, folder, moment):
        self.folder, self.left, self.happened = Path(folder), moment, False
        monkeypatch.setattr(os, "unlink", self._watched(os.unlink))
        monkeypatch.setattr(Path, "replace", self._watched(Path.replace))

    def _watched(self, function):
        def changed(path, *args, **kwargs):
            # Within a folder that is removed as a whole, files are named without it.
            if "dir_fd" in kwargs or (self.folder in (Path(path), *Path(path).parents) and Path(path).exists()):
                self.left -= 1
                if self.left < 0:
                    self.strike(Path(path), writes=bool(args))
            return function(path, *args, **kwargs)

        return changed


class Kill(Disturbance):
    """Keeps the folder as it was at the moment, and lets the command end as it may.

    With `torn`, a file that is being written reached the disk in half.
    """

    def __init__(self, monkeypatch, folder, moment, torn):
        super().__init__(monkeypatch, folder, moment)
        self.torn, self.snapshot = torn, folder.with_name("snapshot")

    def strike(self, path, writes):
        """Stop at the first moment; the others are those of a process that is no more."""
        if not self.happened:
            self.happened = True
            shutil.copytree(self.folder, self.snapshot)
            if self.torn and writes and path.suffix == ".partial":  # others are whole, and only get another place
                half = self.snapshot / path.relative_to(self.folder)
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

    def strike(self, path, writes):
        """Fail like a disk without space."""
        if writes and self.times:
            self.times -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
