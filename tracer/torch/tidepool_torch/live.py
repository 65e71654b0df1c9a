"""Records an unchanged running script: `tidepool record --torch -- python3 train.py`."""

import atexit
import contextlib
import ctypes
import os
import sys
import weakref

import torch

from .compiled import CompileWatch, note_modules
from .devices import find_device
from .discovery import Discovery, leave_backward, outermost_modules
from .first_calls import FirstCalls
from .graphs import run_by_operator
from .history import History
from .live_recorder import LiveRecorder
from .native import core_or_none
from .other_recorder import OtherRecorder
from .raw_file import RawFile
from .step_limit import StepLimit
from .threads import OtherThreads


class Capture:
    """Records `iterations` iterations, or all, after the end of the first one and `skip` further iterations. `times`: as
    for LiveRecorder."""

    def __init__(self, folder, skip=0, iterations=None, times=None):
        self._skip, self._left, self._times = skip, iterations, times
        self._file = RawFile(folder)  # the file's existence also shows that the recorder was attached to this process
        self._recorder = self._history = None
        self._ends = None  # weak reference to the optimizer whose steps end iterations; None: backward passes do
        self._other = OtherRecorder(os.environ.get("CUDA_INJECTION64_PATH"))
        self._flush_standin = getattr(ctypes.CDLL(None), "tidepool_flush", None)
        self._first = None
        self._new_recorder = _recorder_class()
        if self._flush_standin is None:  # otherwise the stand-in for a GPU records allocations
            self._history = History(lambda: self._file)
        else:
            self._first = FirstCalls(lambda models, records: self._new_recorder(models, [], records, times), _say)
        self._threads = OtherThreads(lambda: self._recorder)
        self._discovery = Discovery(self._stepped, self._failed)
        self._compile, self._compiles = CompileWatch(self._compiled), False
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self._end)

    def _stepped(self, optimizer):
        self._other.iteration()
        if self._first is not None:
            self._first.stepped(self._discovery.optimizers())
        before = self._ends and self._ends()
        self._ends = optimizer and weakref.ref(optimizer)
        goes_on = self._discovery.goes_on
        if self._recorder is not None and (goes_on or optimizer is not before):
            optimizers = self._discovery.optimizers()
            if self._recorder.lost or not self._recorder.follow(outermost_modules(optimizers), optimizers):
                self._end()
        elif self._recorder is not None:
            if self._compile.compiles() and not self._compiles:
                self._lose_to_compiler()
            if self._history is not None:
                self._history.write()  # first, since iteration() writes the file, and later records may be dropped
            else:
                self._flush_standin()
            self._recorder.iteration()
            self._drop_first()
            if self._left is not None:
                self._left -= 1
            if self._left == 0 or self._recorder.lost or not self._file.is_open:
                self._end()
        elif self._skip > 0 or goes_on:
            self._skip -= not goes_on
        else:
            self._recorder = self._recorder_for()
            self._threads.taken()
            self._recorder.__enter__()

    def _recorder_for(self):
        optimizers = self._discovery.optimizers()
        models = outermost_modules(optimizers)
        self._compiles = self._compile.compiles()
        if not self._compiles:
            return self._new_recorder(models, optimizers, self._file, self._times, self._threads)
        from .compiled_recorder import CompiledRecorder

        recorder = CompiledRecorder(models, optimizers, self._file, self._times, self._threads)
        if recorder.on_cpu and self._compile.foreign:
            raise RuntimeError(CompileWatch.REASON + " that would be recorded; TORCH_COMPILE_DISABLE=1 makes a script run without")
        return recorder

    def _compiled(self, first):
        if first:
            leave_backward()
            note_modules()
            if self._flush_standin is None and not torch.cuda.is_available():
                run_by_operator()
            self._drop_first()
        if self._recorder is not None and self._compile.compiles():
            self._lose_to_compiler()
            self._end()

    def _lose_to_compiler(self):
        self._recorder.lose(RuntimeError(CompileWatch.REASON + " that would be recorded"))

    def _failed(self, error):
        self._discovery.stop()
        self._compile.stop()
        self._threads.stop()
        if self._recorder is not None:
            self._recorder.forked()
            self._recorder = None
        _say(error)

    def _end(self):
        """Ends the recording. Records of an incomplete iteration are dropped if there are complete ones, or if the job ended in
        an evaluation behind its only step, which the first calls have."""
        try:
            self._other.iteration(last=True)
            self._discovery.stop()
            self._compile.stop()
            self._threads.stop()
            recorder, self._recorder = self._recorder, None
            first = self._drop_first()
            counts = False  # whether the incomplete iteration counts
            if recorder is not None:
                recorder.__exit__(None, None, None)
                counts = recorder.begun and (not first or _has_failed())
                if recorder.complete > 0 or not counts:
                    self._file.drop()
                if recorder.missed > 0:
                    _say_missed(recorder.missed)
                if recorder.left_out > 0:
                    _say_left_out(recorder.left_out)
            if recorder is None or not (recorder.complete or counts):
                for line in first:
                    self._file.add(line)
            if self._history is not None:
                self._history.end()
                self._history = None
            self._file.close()
        except Exception as error:
            _say(error)

    def _drop_first(self):
        """Ends the recording of the first calls. Returns its records."""
        first, self._first = self._first, None
        return [] if first is None else first.take(failed=_has_failed())

    def _forked(self):
        self._discovery.stop()
        self._threads.stop()
        self._file.abandon()
        atexit.unregister(self._end)


def _has_failed():
    return hasattr(sys, "last_value")  # of an uncaught exception


def _recorder_class():
    """What makes a recorder: with the native core, if it is asked for and can be used."""
    core = core_or_none()
    if core is None:
        return LiveRecorder
    from .replay import NativeRecorder

    return lambda *given: NativeRecorder(core, *given) if core.works_here() else LiveRecorder(*given)


def _say_missed(count):
    print(f"tidepool: {count} ops of other threads are not recorded; only those of the thread that calls the "
          "optimizer's step() are",
          file=sys.stderr, flush=True)


def _say_left_out(count):
    print(f"tidepool: {count} ops before the forward pass of a step, as those of an evaluation, are not in the trace: the step "
          "uses no result of theirs", file=sys.stderr, flush=True)


def _say(error):
    with contextlib.suppress(OSError, ValueError):  # the job may have closed stderr
        print(f"tidepool_torch: {type(error).__name__}: {error}; PyTorch is not recorded", file=sys.stderr, flush=True)


def attach():
    """Called when torch has been imported. If recording is impossible, says why and lets the job go on unrecorded."""
    try:
        iterations = os.environ.get("TIDEPOOL_ITERATIONS")
        times = os.environ.get("TIDEPOOL_TIMES")
        Capture(os.environ["TIDEPOOL_RAW"], int(os.environ.get("TIDEPOOL_SKIP", "0")),
                int(iterations) if iterations else None, find_device(times) if times else None)
        if steps := os.environ.get("TIDEPOOL_STEPS"):
            StepLimit(int(steps))
    except Exception as error:
        _say(error)
