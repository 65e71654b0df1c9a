"""Location of each version's content while a plan is executed: in the program's storage, in a storage of the plan, on
the host, or nowhere until it is recomputed."""

import weakref

import torch

from .device import bytes_of


class Tensors:
    """The live tensors of one trace buffer in this iteration."""

    def __init__(self, storage, version):
        self.home = weakref.ref(storage)  # the storage that the program's tensors share
        self.version = version  # the version that the tensors have now


class Content:
    """A version that an action of the plan has used.

    place   weak reference to the storage that holds it, None while none does
    owned   the same storage, if only the plan keeps it: a recomputed version has no other owner
    copied  whether the storage has a copy of the replaced version, which an op will change
    ended   whether the plan has no further use of it; then it ends with the program's last tensor
    host    its copy on the host
    out, back  events at the end of the swap-out and the swap-in, None if none is under way
    source  a tensor of the bytes that a swap-out reads
    native  what made the copy on the host, if the native core did
    """

    def __init__(self):
        self.place = self.owned = self.host = self.out = self.back = self.source = self.native = None
        self.copied = self.ended = False

    def storage(self):
        return self.place() if self.place is not None else None

    def put(self, storage, owned):
        self.place = weakref.ref(storage)
        self.owned = storage if owned else None


class Contents:
    """Swaps, drops and restores versions. Each action returns whether it could be done.

    When a version leaves the device, its storage is resized to 0 bytes; the program's tensors stay valid. A swap-in
    fills the same storage again. A recomputed version gets a new storage, and the Follower gives ops tensors with it.
    """

    def __init__(self, device, meter):
        self._device = device
        self._meter = meter
        self.tensors = {}  # trace buffer -> Tensors
        self._contents = {}  # version -> Content
        self._pinned = weakref.WeakSet()
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
        """The storage of the program's tensors, if they exist and have this version."""
        tensors = self.tensors.get(buffer)
        return tensors.home() if tensors is not None and tensors.version == version else None

    def put(self, version, storage):
        """Records that a version was recomputed, in a storage that only the plan keeps."""
        content = self._contents.setdefault(version, Content())
        content.put(storage, owned=True)
        self._meter.count(storage)

    def copy(self, parent, version, buffer):
        """Gives a version a storage with a copy of the version that it replaces, which stays."""
        self.ready(parent)
        source = self.storage(parent, buffer)
        self.put(version, self.new_storage(source.nbytes()))
        bytes_of(self.storage(version, buffer)).copy_(bytes_of(source))
        self._contents[version].copied = True

    def is_copy(self, version):
        content = self._contents.get(version)
        return content is not None and content.copied

    def take_copy(self, version):
        """Whether the storage had a copy of the replaced version; from now on it counts as changed."""
        copied = self.is_copy(version)
        if copied:
            self._contents[version].copied = False
        return copied

    def swap_out(self, version, buffer):
        storage = self.storage(version, buffer)
        if storage is None:
            return self.only_on_host(version)  # swapped out in the previous step
        content = self._manage(version, storage)
        if content.host is None:
            size = storage.nbytes()
            content.host = self._device.host_bytes(size)
            content.source = bytes_of(storage)  # must not end while it is copied
            content.out = self._device.copy("out", bytes_of(content.host), content.source, content.back)
            self.copied_out += size
        return True

    def drop(self, version, buffer):
        storage = self.storage(version, buffer)
        if storage is None:
            return version in self._contents  # it is no longer on the device
        if not self._may_empty(storage):
            return False
        content = self._manage(version, storage)
        self.finish(version)
        self._empty(storage)
        content.place = content.owned = None
        return True

    def resizable(self, version, buffer):
        """Whether the memory of a version can be freed. Memory of an array that the job has, or shared with a data loader, cannot."""
        storage = self.storage(version, buffer)
        return storage is None or self._may_empty(storage)

    def pin(self, storage):
        """The memory of a storage of the job stays as long as it lives."""
        self._pinned.add(storage)

    def _may_empty(self, storage):
        return storage.resizable() and storage not in self._pinned

    def swap_in(self, version, buffer):
        content = self._contents.get(version)
        if content is None or content.host is None or content.storage() is not None:
            return self.storage(version, buffer) is not None
        size = content.host.nbytes()
        storage, owned = self.home(version, buffer), False
        if storage is None:
            storage, owned = self.new_storage(size), True
        else:
            storage.resize_(size)
        content.put(storage, owned)
        self._meter.count(storage)
        content.back = self._device.copy("in", bytes_of(storage), bytes_of(content.host), content.out)
        self.copied_in += size
        return True

    def ready(self, version):
        """Later ops wait until the swap-in of a version has ended."""
        content = self._contents.get(version)
        if content is not None and content.back is not None:
            self._device.wait(content.back)
            content.back = None

    def finish(self, version):
        """Later ops wait until all copies of a version have ended: before its memory is reused or overwritten."""
        self.ready(version)
        content = self._contents.get(version)
        if content is not None and content.out is not None:
            self._device.wait(content.out)
            content.out = content.source = None

    def end(self, version, buffer):
        """The program does not use a version any more. Tensors that it still has keep their content."""
        content = self._contents.get(version)
        if content is None:
            return
        content.ended = True
        self.finish(version)  # a copy to the host keeps the storage
        home = self.home(version, buffer)
        if home is None:
            self.forget(version)
        elif content.owned is home:  # the program's tensors keep it
            content.owned = None

    def owned(self, version):
        """The storage of a version that only the plan keeps, or None."""
        content = self._contents.get(version)
        return content.owned if content is not None else None

    def released(self, version):
        """The program's last tensor has ended. Forgets the version unless the plan keeps it for a later use."""
        content = self._contents.get(version)
        if content is not None and (content.owned is None or content.ended):
            self.forget(version)

    def forget(self, version):
        self.finish(version)
        self._contents.pop(version, None)

    def become(self, before, after):
        """An op changed a version in place: its storage holds the next version now, and its host copy is outdated."""
        content = self._contents.pop(before, None)
        if content is None:
            return
        there = self._contents.setdefault(after, Content())  # the version's first run may have left a copy on the host
        there.place, there.owned = content.place, content.owned

    def restore_home(self, version, buffer):
        """Brings the content back to the storage of the program's tensors, from the device or the host, and forgets
        the version. Returns whether the content was found."""
        self.finish(version)  # a copy that has ended may have been the last to keep the storage
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

    def fill_home(self, version, buffer):
        """Copies a version from the plan's storage to the empty one of the program's tensors. Returns whether that was needed."""
        home, storage = self.home(version, buffer), self.storage(version, buffer)
        if home is None or storage is home or home.nbytes() > 0:
            return False
        home.resize_(storage.nbytes())
        bytes_of(home).copy_(bytes_of(storage))
        self._meter.count(home)
        return True

    def empty_home(self, version, buffer):
        """Undoes fill_home()."""
        home = self.home(version, buffer)
        if home is not None and home is not self.storage(version, buffer):
            self._empty(home)

    def grow(self, version, buffer, size):
        """Gives the program's tensors of a version memory again, without content: an op overwrites all of it."""
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
        """Begin of the next iteration: contents get the numbers of their versions in it. names: old -> new number."""
        renamed = {names[version]: content for version, content in self._contents.items()}
        self._contents.clear()
        self._contents.update(renamed)

    def adopt(self, version, host):
        """A version is only on the host, where its bytes are `host`."""
        content = self._contents[version] = Content()
        content.host = host

    def hand_over(self, version):
        """Forgets a version that is only on the host. Returns its bytes there."""
        self.finish(version)
        return self._contents.pop(version).host

    def new_storage(self, size):
        """A storage that only the plan keeps."""
        return torch.UntypedStorage(size, device=self._device.where)

    def _manage(self, version, storage):
        content = self._contents.get(version)
        if content is None:
            content = self._contents[version] = Content()
            content.put(storage, owned=False)
        return content

    def _empty(self, storage):
        storage.resize_(0)
        self._meter.count(storage)
