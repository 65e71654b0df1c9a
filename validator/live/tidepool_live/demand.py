"""Memory for ops that the plan does not know: what was not used for the longest time goes to the host, as in an allocator
that swaps, and comes back before an op uses it."""

import torch
from tidepool_torch.program import Buffer
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from .device import bytes_of
from .program import BLOCK


class Demand:
    """limit     bytes that the job may use
    storages  the LiveStorages of the job; device and meter: as for Contents
    evict     called with a buffer and its storage, which is not in use longest: puts it away, or leaves it
    away      an empty dictionary
    """

    def __init__(self, limit, device, meter, storages, evict, away):
        self._limit, self._device, self._meter, self._storages, self._evict = limit, device, meter, storages, evict
        self._away = away  # live Buffer -> its bytes on the host
        self._kept = set()  # buffers whose memory code of the job reads without ops

    def __bool__(self):
        return bool(self._away)

    def buffers(self):
        return list(self._away)

    def holds(self, buffer):
        return buffer in self._away

    def end(self, buffer):
        self._away.pop(buffer, None)
        self._kept.discard(buffer)

    def lacks(self, size):
        """Whether `size` more bytes are more than the job may use."""
        return self._meter.now + size > self._limit

    def make_room(self, size):
        """Evicts buffers until `size` more bytes are within the limit, or no other buffer can go. Storages smaller than a block
        of PyTorch's allocator are not worth a copy."""
        if not self.lacks(size):
            return
        for buffer, storage in self._storages.by_last_use():
            if storage.nbytes() >= BLOCK and storage.resizable() and buffer not in self._kept:
                self._evict(buffer, storage)
                if not self.lacks(size):
                    return

    def put_away(self, buffer, storage):
        host = self._device.host_bytes(storage.nbytes())
        self._device.wait(self._device.copy("out", bytes_of(host), bytes_of(storage)))
        storage.resize_(0)
        self._meter.count(storage)
        self._away[buffer] = host

    def adopt(self, buffer, host):
        """The storage of a buffer is empty, and `host` has its bytes."""
        self._away[buffer] = host

    def take(self, buffer):
        """The bytes of a buffer on the host, which this object forgets; None if it has none."""
        return self._away.pop(buffer, None)

    def bring(self, buffers):
        for buffer in buffers:
            if buffer in self._away:
                self.make_room(self._away[buffer].nbytes())
                self._fill(buffer)

    def bring_all(self):
        """Brings all buffers back, whatever the limit is."""
        for buffer in list(self._away):
            self._fill(buffer)

    def keep(self, buffers):
        """Brings buffers back. They stay until they end."""
        self._kept.update(buffers)
        self.bring(buffers)

    def _fill(self, buffer):
        storage, host = self._storages.home(buffer), self._away.pop(buffer)
        storage.resize_(host.nbytes())
        self._meter.count(storage)
        self._device.wait(self._device.copy("in", bytes_of(storage), bytes_of(host)))


def made_bytes(call):
    """Bytes of the storages that a call will make. PyTorch computes the shapes; where it cannot, the bytes of the arguments stand
    for them."""
    if call.signature.views:
        return 0
    tensors = [tensor for _, tensor in call.tensors()]
    given = set()

    def shape_of(leaf):
        if isinstance(leaf, torch.Tensor):
            meta = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
            given.add(meta.untyped_storage()._cdata)
            metas.append(meta)
            return meta
        if isinstance(leaf, torch.device):
            return torch.device("meta")
        return None if isinstance(leaf, torch.Generator) else leaf

    metas = []  # keeps the addresses in `given` from being used again
    try:
        if call.func.namespace != "aten":
            raise NotImplementedError
        with _disable_current_modes():
            args, kwargs = tree_map(shape_of, call.args), tree_map(shape_of, dict(call.kwargs))
            if call.has("device") and not tensors:
                kwargs["device"] = torch.device("meta")
            made = [leaf.untyped_storage() for leaf in tree_leaves(call.func(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]
    except Exception:  # the op has no rule for shapes, or its shapes depend on content
        made = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage._cdata: storage.nbytes() for storage in made if storage._cdata not in given}.values())


def buffers_of(given):
    """The live buffers of a call's arguments. given: (argument, tensor, buffer) for each tensor."""
    return {buffer for _, _, buffer in given if isinstance(buffer, Buffer)}
