"""A Recorder inside an unchanged job. The job must not notice the recorder."""

import atexit
import functools
import os
import sys
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode, _pop_mode, _push_mode
from torch.utils._pytree import tree_leaves

from .busy_threads import wait_for_threads
from .program import Buffer
from .recorder import Recorder
from .storages import Storages, storage_of

_guests = weakref.WeakSet()
# While this context is entered, neither modes of the job nor classes of its tensors see calls of functions of PyTorch.
unseen = torch._C.DisableTorchFunction


@functools.cache
def _let_modes_go_at_exit():
    """A thread of a backward pass holds the pass's dispatch modes until just after the pass. If it releases them while
    Python is shutting down, PyTorch asks for the interpreter lock and the process aborts. So the end of a job first
    waits for such threads, longer on a busy machine."""
    atexit.register(wait_for_threads, least=0.1, most=2)


class Guest(Recorder):
    """A Recorder that leaves the job alone:

    * a mode of the job that is on stays above the recorder, so that it sees each op once and ends when the job ends it;
    * a process that the job forks is not recorded: it may load data, or do anything else;
    * ops of a DataLoader of this process are not recorded (`resting`); the buffers of its batches begin with their
      first use in a step;
    * an error of the recorder is reported once and ends the recording (`lose`), not the job.
    """

    measures = False
    supports_higher_order_operators = True  # otherwise PyTorch refuses them while a mode is on

    @classmethod
    def ignore_compile_internals(cls):
        return True  # compiled code stays compiled

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # saves two Python calls for each op; nothing is compiled while a guest records

    def __init__(self, models, optimizers):
        self.resting = 0
        self.lost = False
        self.entered = False
        super().__init__(models, optimizers, device=None)

    def __enter__(self):
        _let_modes_go_at_exit()
        self._below_others(super().__enter__)
        self.entered = True
        _guests.add(self)
        _watch_loaders(self, self._scope)
        return self

    def _below_others(self, enter):
        """Enters the mode below those of the job."""
        above = _take_off(None)
        try:
            enter()
        finally:
            _put_back(above)
        if above:
            _nest_flags(self, above[-1])

    def pause(self):
        """No ops are seen until resume()."""
        _remove(self)

    def resume(self):
        self._below_others(lambda: Recorder._enter_mode(self))

    def _leave_mode(self, *error):
        self.entered = False
        _guests.discard(self)
        _remove(self)

    def _rest_collector(self):
        pass  # the garbage collector stays on, since the job may run for hours

    def _find_gradients(self, look_up):
        if self.lost:
            return
        try:
            with unseen():
                super()._find_gradients(look_up)
        except Exception as error:
            self.lose(error)

    def _new_storages(self, on_gpu):
        return GuestStorages(self, on_gpu)

    def lose(self, error):
        """Reports once why the recording ends."""
        if not self.lost:
            self.lost = True
            print(f"tidepool: {self.work} ends here: {type(error).__name__}: {error}; the job goes on", file=sys.stderr,
                  flush=True)

    def forking(self):
        """The job is about to fork a process."""

    def forked(self):
        """In a forked process: removes all of the recorder, except a mode that other threads may still have."""
        self.lost = True
        self._leave_mode()
        self._storages.following = False
        self._scope.close()

    def brought(self, batch):
        """A loader has delivered a batch."""
        try:
            with unseen():
                for leaf in tree_leaves(batch):
                    if isinstance(leaf, torch.Tensor):
                        self._storages.bring(leaf)
        except Exception as error:
            self.lose(error)


class GuestStorages(Storages):
    """Storages of a job. The buffer of a loader's batch begins when a step first uses it."""

    def __init__(self, program, on_gpu):
        super().__init__(program, on_gpu)
        self._waiting = set()  # buffers of batches that no op has used

    def find(self, tensor):
        buffer = super().find(tensor)
        if self._waiting and buffer in self._waiting:
            self._waiting.discard(buffer)
            self._program.alloc(buffer)
        return buffer

    def bring(self, tensor):
        if self.following and self.known(tensor) is None:
            buffer = self.add(tensor, kind="input")
            if isinstance(buffer, Buffer):
                self._waiting.add(buffer)

    def _bytes(self, tensor):
        """Fake tensors that a job makes beside real ones, as DTensor does to find shapes, have no bytes on any device."""
        storage = storage_of(tensor)
        return 0 if storage.device.type == "meta" else storage.nbytes()

    def _end(self, buffer):
        if buffer in self._waiting:
            self._waiting.discard(buffer)
        else:
            super()._end(buffer)


def _forking():
    for guest in list(_guests):
        guest.forking()


def _forked():
    for guest in list(_guests):
        guest.forked()


os.register_at_fork(before=_forking, after_in_child=_forked)


def _watch_loaders(guest, scope):
    from torch.utils.data import dataloader

    def watch(holder, name, brings):
        function = getattr(holder, name)

        @functools.wraps(function)
        def watched(*args, **kwargs):
            guest.resting += 1
            try:
                result = function(*args, **kwargs)
            finally:
                guest.resting -= 1
            if brings:
                guest.brought(result)
            return result

        def restore():
            if vars(holder).get(name) is watched:
                setattr(holder, name, function)

        setattr(holder, name, watched)
        scope.callback(restore)

    watch(dataloader.DataLoader, "__iter__", brings=False)
    watch(dataloader._BaseDataLoaderIter, "__next__", brings=True)


def _remove(mode):
    """Takes a dispatch mode off this thread's stack, at any position."""
    above = _take_off(mode)
    if _get_current_dispatch_mode() is mode:
        if above:
            for flags, others in _flags(mode, above[-1]):
                others[-1] = flags.pop()  # the mode above restores them instead
            _pop_mode()
        else:
            TorchDispatchMode.__exit__(mode, None, None, None)
    _put_back(above)


def _take_off(mode):
    """Takes the modes above this one, or all, off this thread's stack, except those that PyTorch keeps below all others. Returns
    them, the upper ones first."""
    above = []
    while True:
        top = _get_current_dispatch_mode()
        if top is None or top is mode or getattr(top, "_mode_key", None) is not None:
            return above
        above.append(top)
        _pop_mode()


def _put_back(modes):
    for mode in reversed(modes):
        _push_mode(mode)


def _nest_flags(mode, above):
    """What a mode at its end restores is as if it had begun before the one above. A Guest ignores what is compiled, so it does not
    set that flag."""
    for flags, others in _flags(mode, above):
        flags[-1] = others[-1]
        others[-1] = others[-1] or others is not getattr(above, "old_without_ignore_compile_internals_dispatch_mode_flags", None)


def _flags(mode, other):
    """The flags that two modes restore, in pairs of stacks."""
    return [(flags, others) for name, flags in vars(mode).items() if name.startswith("old_") and name.endswith("_flags")
            and flags and (others := getattr(other, name, None))]
