"""Bytes on the device, counted at every storage that appears, shrinks, grows or ends."""

import weakref


class Meter:
    def __init__(self):
        self._counted = {}  # address of a StorageImpl -> (weak reference, bytes counted)
        self.now = self.peak = 0

    def count(self, storage):
        """Counts the bytes of a storage; called again when its size has changed."""
        key = storage._cdata
        _, before = self._counted.get(key, (None, 0))
        if key not in self._counted:
            reference = weakref.ref(storage, lambda _: self._end(key))
        else:
            reference = self._counted[key][0]
        self._counted[key] = (reference, storage.nbytes())
        self.now += storage.nbytes() - before
        self.peak = max(self.peak, self.now)

    def start(self):
        """Begins a new interval, whose peak is measured."""
        self.peak = self.now

    def _end(self, key):
        self.now -= self._counted.pop(key)[1]
