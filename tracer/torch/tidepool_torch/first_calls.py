"""The first calls of a job's modules, in a dry run."""

import contextlib
import os
import threading

import torch
from torch.nn.modules import module as module_hooks

from .discovery import outermost_modules
from .raw_file import Records
from .step_begin import without_ops

_MOST_CALLS = 8  # without gradients, such as the tokens of a loop that generates text


def _none(_lines):
    return []


class FirstCalls:
    """Records a job from the first call of a module on. Until a later step is recorded, this is all that is known of it: of
    inference, of a single step, or of a failure in the first one. An iteration is a training step, or an outermost call without
    gradients. Ops between such calls are not seen.

    make(models, records)  gives a LiveRecorder
    """

    def __init__(self, make, failed):
        self._make, self._failed = make, failed
        self._left = _MOST_CALLS
        self._recorder = None
        self._records = Records()
        self._began = self._records.place()
        self._ended = None  # the place behind the last complete iteration
        self._stepped = False
        self._depth = 0  # of the running module calls
        self._paused = False
        self._pid, self._thread = os.getpid(), threading.get_ident()
        self._hooks = [module_hooks.register_module_forward_pre_hook(self._enter),
                       module_hooks.register_module_forward_hook(self._leave, always_call=True)]

    def stepped(self, optimizers):
        """A training step has ended, and with it what is recorded here."""
        self._stepped = True
        if self._recorder is not None:
            self._recorder.expect(optimizers)
            self._end_iteration()
        self.stop()

    def stop(self):
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.__exit__(None, None, None)

    def take(self, failed=False):
        """Ends the recording, and the job. Returns its records: if the job failed in an iteration, those of this one, else those
        of complete iterations."""
        fails = failed and self._recorder is not None and self._recorder.begun
        if self._recorder is not None and self._ended is None and not fails:
            self._end_iteration()
        self.stop()
        if self._ended is not None:
            unwanted, change = ((self._began, self._ended), without_ops) if fails else ((self._ended, self._records.place()), _none)
            self._records.replace(*unwanted, change)
        if self._ended is not None and not failed and not self._stepped:
            self._records.write(kind="info", key="inference", value="the job ended without a training step")
        return self._records.take()

    def _enter(self, module, _inputs):
        if not self._is_own():
            return
        self._depth += 1
        if self._depth == 1:
            with self._guarded():
                self._begin_call(module)

    def _leave(self, _module, _inputs, outputs):
        if not self._is_own() or self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0 and self._recorder is not None and outputs is not None:  # else the call may have failed
            with self._guarded():
                self._end_call()

    def _is_own(self):
        return threading.get_ident() == self._thread and os.getpid() == self._pid

    @contextlib.contextmanager
    def _guarded(self):
        try:
            with torch._C.DisableTorchFunction():
                yield
        except Exception as error:
            self._records.take()
            self.stop()
            self._failed(error)

    def _begin_call(self, module):
        if self._recorder is None:
            if torch._C._functorch.peek_interpreter_stack() is not None:
                return  # a mode may not begin within a transformation of functions
            models = sorted(outermost_modules(), key=lambda model: all(part is not module for part in model.modules()))
            self._recorder = self._make(models, self._records)
            self._recorder.__enter__()
        elif self._paused:
            self._recorder.resume()
        self._paused = False

    def _end_call(self):
        if torch.is_grad_enabled() or self._recorder.trains:
            return  # a part of a training step
        self._recorder.pause()  # inference_mode ends all that began within it
        self._paused = True
        self._end_iteration()
        self._left -= 1
        if self._left == 0:
            self.stop()

    def _end_iteration(self):
        self._recorder.iteration()
        self._ended = self._records.place()
