"""Attaches to an unmodified training script: finds its models and optimizers, and follows it from one step to the next."""

import atexit
import functools
import os
import sys

import torch
from tidepool_torch.discovery import Discovery

from .allocator import LayoutAllocator
from .device import device_for
from .follower import Follower
from .program import LiveProgram
from .report import Report, save_report
from .saved import SavedTensors


class Session:
    """Waits for the first step of an optimizer, which makes its state, and follows the job from its end on."""

    def __init__(self, plan):
        self._plan, self._report = plan, Report(plan)
        self._follower = None
        self._discovery = Discovery(self._stepped)

    def _stepped(self, models, optimizer):
        self._discovery.stop()
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._follower = Follower(self._plan, models, [optimizer], device_for(parameters), self._report)
        self._follower.__enter__()
        SavedTensors(self._follower).__enter__()
        save = torch.save

        @functools.wraps(save)
        def save_settled(*args, **kwargs):
            self._follower.settle()
            return save(*args, **kwargs)

        torch.save = save_settled  # it reads storages by their addresses

    def report(self):
        return self._report.content() if self._follower is not None and self._discovery.in_process() else {}


def attach():
    """Called once torch has been imported. Says what is wrong and lets the job go on without the plan, if it cannot."""
    sources = []
    try:
        if "TIDEPOOL_ALLOCATOR" in os.environ:
            sources.append(LayoutAllocator(os.environ["TIDEPOOL_ALLOCATOR"]))
        if "TIDEPOOL_LIVE_PROGRAM" in os.environ:
            sources.append(Session(LiveProgram.load(os.environ["TIDEPOOL_LIVE_PROGRAM"])))
    except Exception as error:
        print(f"tidepool_live: {type(error).__name__}: {error}; the job runs without the plan", file=sys.stderr)

    def save():
        content = {key: value for source in sources for key, value in source.report().items()}
        if content:
            save_report(content, os.environ["TIDEPOOL_LIVE_REPORT"])

    atexit.register(save)
