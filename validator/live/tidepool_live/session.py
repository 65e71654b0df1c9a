"""Execution of a plan in an unmodified training script, whose models and optimizers are found when it runs."""

import atexit
import contextlib
import json
import os
import sys

import torch
from tidepool_torch.compiled import CompileWatch
from tidepool_torch.discovery import Discovery, leave_backward, outermost_modules
from tidepool_torch.errors import RecordingError
from torch.utils._python_dispatch import _disable_current_modes

from .allocator import LayoutAllocator
from .arrays import watch_arrays
from .device import device_for
from .choice import follower_for
from .program import LiveProgram
from .readers import lend_to_readers
from .report import Report, save_report
from .saved import saved_tensors_of


class Session:
    """Waits for the end of an iteration in which optimizers allocate their state, and starts a Follower then.

    limit  bytes that the job may use once the whole plan is executed; None for no limit
    """

    def __init__(self, plan, limit=None):
        self._plan, self._limit, self._report = plan, limit, Report(plan)
        self._follower = None
        self._discovery = Discovery(self._stepped, self._failed)
        self._compile = CompileWatch(self._compiled)

    def _stepped(self, _optimizer):
        optimizers = self._discovery.optimizers()
        self._discovery.stop()
        if self._compile.compiles():
            raise RecordingError(CompileWatch.REASON + " that the plan is about")
        self._follow(optimizers)

    def _failed(self, error):
        self._discovery.stop()
        self._report.stopped(str(error))
        _say(error)

    def _compiled(self, _first):
        leave_backward()
        if self._follower is not None and self._compile.compiles():
            self._follower.give_up(RecordingError(CompileWatch.REASON + " that the plan is about"))

    def _follow(self, optimizers):
        models = outermost_modules(optimizers)
        parameters = [parameter for model in models for parameter in model.parameters()]
        parameters += [parameter for each in optimizers[:1] for group in each.param_groups for parameter in group["params"]]
        with _disable_current_modes():  # the job's own see no op that a Follower needs to begin
            self._follower = follower_for(self._plan, models, optimizers, device_for(parameters), self._report, self._limit)
        self._follower.__enter__()
        self._saved = saved_tensors_of(self._follower)
        self._saved.__enter__()
        lend_to_readers(self._follower)
        watch_arrays()

    def report(self):
        return self._report.content() if self._discovery.in_process() else {}


def _say(error):
    with contextlib.suppress(OSError, ValueError):  # the job may have closed stderr
        print(f"tidepool_live: {type(error).__name__}: {error}; the job runs without the plan", file=sys.stderr, flush=True)


def attach():
    """Called when torch has been imported. If it fails, it prints the reason and the job runs without the plan."""
    sources = []
    try:
        if "TIDEPOOL_ALLOCATOR" in os.environ:
            sources.append(LayoutAllocator(os.environ["TIDEPOOL_ALLOCATOR"]))
        if "TIDEPOOL_LIVE_PROGRAM" in os.environ:
            limit = os.environ.get("TIDEPOOL_LIMIT")
            path = os.environ["TIDEPOOL_LIVE_PROGRAM"]
            with open(path, encoding="utf-8") as file:
                compiled = "tidepool_graphs" in json.load(file)
            if compiled:
                from tidepool_torch.partitioner import partitioner  # imports the compiler

                from .compiled_session import CompiledSession

                sources.append(CompiledSession(partitioner(path)))
            else:
                sources.append(Session(LiveProgram.load(path), int(limit) if limit else None))
    except Exception as error:
        _say(error)

    def save():
        content = {key: value for source in sources for key, value in source.report().items()}
        try:
            if content:
                save_report(content, os.environ["TIDEPOOL_LIVE_REPORT"])
        except OSError as error:
            print(f"tidepool_live: {error}; there is no report", file=sys.stderr, flush=True)

    atexit.register(save)
