"""The buffer of a tensor: follows storages from the op that makes them, or from their first use, to their end."""

import weakref

import torch

from .errors import RecordingError
from .program import Buffer

HOST = object()  # stands for the buffer of a storage in host memory: it is followed, but not recorded
EMPTY = object()  # the same for a storage without bytes, such as that of a meta tensor


class Storages:
    """Live storages and their buffers in a program. Views of one storage are one buffer.

    program  receives buffers from before the recording, and the ends of buffers
    on_gpu   whether CPU tensors are host memory; otherwise they stand for device memory
    """

    def __init__(self, program, on_gpu):
        self._program = program
        self._on_gpu = on_gpu
        self._buffers = {}  # address of a StorageImpl -> Buffer, HOST or EMPTY, while the storage lives
        self._deaths = {}  # address of the same StorageImpl -> weak reference that reports its end
        self.following = False

    def on_device(self, tensor):
        return not self._on_gpu or tensor.device.type != "cpu"

    def known(self, tensor):
        """The buffer of a tensor; None if its storage is unknown, or was EMPTY and has bytes now."""
        buffer = self._buffers.get(self._key(tensor))
        return None if buffer is EMPTY and self._bytes(tensor) > 0 else buffer

    def find(self, tensor):
        """The buffer of a tensor. An unknown storage is from before the recording."""
        buffer = self._buffers.get(self._key(tensor))
        if buffer is None or buffer is EMPTY:
            buffer = self.known(tensor)
        if buffer is None:
            buffer = self.add(tensor, kind="input")
            if isinstance(buffer, Buffer):
                self._program.add_existing(buffer)
        return buffer

    def add(self, tensor, kind="activation", name=""):
        """Makes a buffer for a new storage. Returns it; HOST or EMPTY for a storage that is not recorded."""
        size = self._bytes(tensor)
        if not self.on_device(tensor):
            return self._follow(tensor, HOST)
        if size == 0:
            return self._follow(tensor, EMPTY)
        return self._follow(tensor, Buffer(size, kind, name, tensor.device.index or 0))

    def add_host(self, tensor):
        """Treats the storage of this tensor as host memory, whatever its device is."""
        if self.known(tensor) is None:
            self._follow(tensor, HOST)

    def _follow(self, tensor, buffer):
        key = self._key(tensor)

        def ended(_reference):
            del self._buffers[key], self._deaths[key]
            if isinstance(buffer, Buffer) and self.following:
                self._end(buffer)

        self._buffers[key] = buffer
        self._deaths[key] = weakref.ref(storage_of(tensor), ended)
        return buffer

    def _bytes(self, tensor):
        return 0 if tensor.device.type == "meta" else storage_of(tensor).nbytes()

    def _key(self, tensor):
        return storage_of(tensor)._cdata

    def _end(self, buffer):
        self._program.free(buffer)


def wraps(kind):
    """Whether tensors of this type, such as DTensor, hold other tensors and have no storage. A dispatch mode returns
    NotImplemented for a call with such types, and then sees the calls with the tensors that they hold."""
    return hasattr(kind, "__tensor_flatten__")


def held_by(tensor):
    """The tensors with storages that a tensor consists of: itself, or those that it holds."""
    if not wraps(type(tensor)):
        return [tensor]
    held = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]  # DTensor also names its mesh
    return [inner for each in held if isinstance(each, torch.Tensor) for inner in held_by(each)]


def storage_of(tensor):
    try:
        return tensor.untyped_storage()
    except NotImplementedError:
        message = f"a tensor of layout {tensor.layout} has no single storage; record strided tensors"
        raise RecordingError(message) from None
