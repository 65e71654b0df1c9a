"""Where the content of each version is while a plan moves it: in its own storage, in one of ours, on the host, or
nowhere, to be computed again."""

import weakref

import torch

from .device import bytes_of


class Tensors:
    """The live tensors' side of one trace buffer in this iteration."""

    def __init__(self, storage, version):
        self.home = weakref.ref(storage)  # what the program's tensors share
        self.version = version  # what the program sees there now


class Content:
    """One version that the plan has touched.

    place  weak reference to the storage that holds it, None while none does
    owned  the same storage, if only the plan keeps it: what was computed again has no other owner
    copied whether it holds a copy of the version before, which an op is about to change
    ended  whether the plan has no further use for it; it goes with the program's last tensor then
    host   its copy there; out and back are the events that end the copies, source what is being copied
    """

    def __init__(self):
        self.place = self.owned = self.host = self.out = self.back = self.source = None
        self.copied = self.ended = False

    def storage(self):
        return self.place() if self.place is not None else None

    def put(self, storage, owned):
        self.place = weakref.ref(storage)
        self.owned = storage if owned else None


class Contents:
    """Moves the bytes of versions. Says with each verb whether it could be done.

    A version that leaves the device shrinks its storage to nothing: the program's tensors stay what they are and have
    no bytes. It comes back into that storage from the host, or into a new one by computing, which the Follower then
    hands to ops instead.
    """

    def __init__(self, device, meter):
        self._device = device
        self._meter = meter
        self.tensors = {}  # trace buffer -> Tensors
        self._contents = {}  # version -> Content
        self.copied_out = self.copied_in = 0  # bytes

    def of(self, version):
        return self._contents.get(version)

    def storage(self, version, buffer):
        """The storage that holds a version on the device now, None if none does."""
        content = self._contents.get(version)
        if content is not None:
            return content.storage()
        tensors = self.tensors.get(buffer)
        if tensors is None or tensors.version != version:
            return None
        return tensors.home()

    def home(self, version, buffer):
        """The storage of the program's tensors, if this version is what they show and they still exist."""
        tensors = self.tensors.get(buffer)
        return tensors.home() if tensors is not None and tensors.version == version else None

    def put(self, version, storage):
        """A version that was computed again, in a storage that nobody else keeps."""
        content = self._contents.setdefault(version, Content())
        content.put(storage, owned=True)
        self._meter.count(storage)

    def copy(self, parent, version, buffer):
        """A place for a version that begins as a copy of the one before it, which stays."""
        self.ready(parent)
        source = self.storage(parent, buffer)
        target = torch.UntypedStorage(source.nbytes(), device=source.device)
        self.put(version, target)
        bytes_of(target).copy_(bytes_of(source))
        self._contents[version].copied = True

    def is_copy(self, version):
        content = self._contents.get(version)
        return content is not None and content.copied

    def take_copy(self, version):
        """Whether the version was a copy of the one before until now."""
        copied = self.is_copy(version)
        if copied:
            self._contents[version].copied = False
        return copied

    def swap_out(self, version, buffer):
        storage = self.storage(version, buffer)
        if storage is None:
            return self.only_on_host(version)  # since the step before
        content = self._manage(version, storage)
        if content.host is None:
            size = storage.nbytes()
            content.host = self._device.host_bytes(size)
            content.source = storage  # must not end while it is copied
            content.out = self._device.copy("out", content.host, bytes_of(storage), content.back)
            self.copied_out += size
        return True

    def drop(self, version, buffer):
        storage = self.storage(version, buffer)
        if storage is None:
            return version in self._contents  # it is away already
        if not storage.resizable():
            return False
        content = self._manage(version, storage)
        self.finish(version)
        self._empty(storage)
        content.place = content.owned = None
        return True

    def resizable(self, version, buffer):
        """Whether the memory of a version can be given back: not what comes from NumPy or is shared with a loader."""
        storage = self.storage(version, buffer)
        return storage is None or storage.resizable()

    def swap_in(self, version, buffer):
        content = self._contents.get(version)
        if content is None or content.host is None or content.storage() is not None:
            return self.storage(version, buffer) is not None
        size = content.host.nbytes
        storage, owned = self.home(version, buffer), False
        if storage is None:
            storage, owned = torch.UntypedStorage(size, device=self._device.where), True
        else:
            storage.resize_(size)
        content.put(storage, owned)
        self._meter.count(storage)
        content.back = self._device.copy("in", bytes_of(storage), content.host, content.out)
        self.copied_in += size
        return True

    def ready(self, version):
        """Lets ops go on only when a copy in has ended."""
        content = self._contents.get(version)
        if content is not None and content.back is not None:
            self._device.wait(content.back)
            content.back = None

    def finish(self, version):
        """Lets ops go on only when copies of a version have ended: before its memory changes hands or content."""
        self.ready(version)
        content = self._contents.get(version)
        if content is not None and content.out is not None:
            self._device.wait(content.out)
            content.out = content.source = None

    def end(self, version, buffer):
        """The program has no further use for a version; tensors that it still holds keep their content."""
        content = self._contents.get(version)
        if content is None:
            return
        content.ended = True
        home = self.home(version, buffer)
        if home is None:
            self.forget(version)
        elif content.owned is home:  # whoever has a view of it keeps it
            content.owned = None

    def released(self, version):
        """The program's last tensor has gone; only the plan may still want what it keeps itself."""
        content = self._contents.get(version)
        if content is not None and (content.owned is None or content.ended):
            self.forget(version)

    def forget(self, version):
        self.finish(version)
        self._contents.pop(version, None)

    def become(self, before, after):
        """An op changed a version in place: what holds it is the next version now, its host copy is stale."""
        content = self._contents.pop(before, None)
        if content is None:
            return
        there = self._contents.setdefault(after, Content())  # it may have a copy on the host from an earlier time
        there.place, there.owned = content.place, content.owned

    def restore_home(self, version, buffer):
        """Gives the program's tensors their bytes back, wherever the content is on device or host, and forgets it.
        Returns whether the content was found."""
        home, storage = self.home(version, buffer), self.storage(version, buffer)
        if storage is None:
            if not self.swap_in(version, buffer):
                return False
            storage = self.storage(version, buffer)
        self.finish(version)
        if home is not None and storage is not home:
            home.resize_(storage.nbytes())
            bytes_of(home).copy_(bytes_of(storage))
            self._meter.count(home)
        self._contents.pop(version, None)
        return True

    def grow(self, version, buffer, size):
        """An empty storage for a version that is overwritten as a whole."""
        home = self.home(version, buffer)
        if home is not None:
            home.resize_(size)
            self._meter.count(home)
        self._contents.pop(version, None)

    def versions(self):
        return list(self._contents)

    def only_on_host(self, version):
        content = self._contents.get(version)
        return content is not None and content.host is not None and content.storage() is None

    def rename(self, names):
        """The next iteration begins: contents go by the names that their versions have there."""
        self._contents = {names[version]: content for version, content in self._contents.items()}

    def _manage(self, version, storage):
        content = self._contents.get(version)
        if content is None:
            content = self._contents[version] = Content()
            content.put(storage, owned=False)
        return content

    def _empty(self, storage):
        storage.resize_(0)
        self._meter.count(storage)
