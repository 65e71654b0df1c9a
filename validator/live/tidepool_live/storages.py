"""The storages of each buffer: that of the program's tensors, and those in which the plan brought versions back."""

import weakref

from tidepool_torch.guest import GuestStorages
from tidepool_torch.program import Buffer


class LiveStorages(GuestStorages):
    """Counts the bytes of the job's storages, and finds a storage of a given buffer."""

    def __init__(self, program, on_gpu, meter):
        super().__init__(program, on_gpu)
        self._meter = meter
        self._places = {}  # Buffer -> weak references to its storages

    def home(self, buffer):
        """The first storage of this buffer that has not ended, that of the program's tensors first; None if all have ended."""
        return next((place() for place in self._places.get(buffer, ()) if place() is not None), None)

    def nbytes(self, tensor, _buffer):
        """Bytes that the storage of a tensor has now."""
        return tensor.untyped_storage().nbytes()

    def used(self, buffers):
        """An op uses these buffers now."""
        for buffer in buffers:
            if buffer in self._places:
                self._places[buffer] = self._places.pop(buffer)

    def single(self, buffer):
        """The storage of this buffer if it has only one; else None."""
        places = [storage for place in self._places.get(buffer, ()) if (storage := place()) is not None]
        return places[0] if len(places) == 1 else None

    def by_last_use(self):
        """(buffer, its storage) of all buffers with a single storage, in the order of their last uses."""
        return [(buffer, storage) for buffer in list(self._places) if (storage := self.single(buffer)) is not None]

    def only(self, buffer, storage):
        """Whether all storages of this buffer have ended, but for this one (or None)."""
        return all(place() is None or place() is storage for place in self._places.get(buffer, ()))

    def end(self, buffer):
        self._places.pop(buffer, None)

    def also(self, storage, buffer):
        """Adds a storage that holds a version of `buffer`. The program may get views of this storage."""
        key = storage._cdata
        if key in self._buffers:
            return

        def ended(_reference):
            del self._buffers[key], self._deaths[key]
            self._program.free(buffer)

        self._buffers[key] = buffer
        self._deaths[key] = weakref.ref(storage, ended)
        self._places.setdefault(buffer, []).append(weakref.ref(storage))

    def _follow(self, tensor, buffer):
        if isinstance(buffer, Buffer):
            storage = tensor.untyped_storage()
            self._places[buffer] = [weakref.ref(storage)]
            self._meter.count(storage)
        return super()._follow(tensor, buffer)
