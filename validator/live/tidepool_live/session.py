"""Attaches to an unmodified training script: finds its models and optimizers, and follows it from one step to the next."""

import atexit
import os
import sys

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from .allocator import LayoutAllocator
from .device import device_for
from .follower import Follower
from .program import LiveProgram
from .report import Report, save_report
from .saved import SavedTensors


class Session:
    """Waits for the first step of an optimizer, which makes its state, and follows the job from its end on."""

    def __init__(self, plan):
        self._plan = plan
        self._report = Report(plan)
        self._pid = os.getpid()
        self._models = []
        self._follower = None
        self._hooks = [register_module_forward_pre_hook(self._enter_module),
                       register_optimizer_step_post_hook(self._stepped)]

    def _enter_module(self, module, _inputs):
        """Modules that are called before the first step; a part's parameters are known with the whole's already."""
        if self._follower is None and not any(module is known for model in self._models for known in model.modules()):
            self._models.append(module)

    def _stepped(self, optimizer, _args, _kwargs):
        if self._follower is not None or os.getpid() != self._pid:
            return
        for hook in self._hooks[:1]:
            hook.remove()
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._follower = Follower(self._plan, self._models, [optimizer], device_for(parameters), self._report)
        self._follower.__enter__()
        SavedTensors(self._follower).__enter__()

    def report(self):
        return self._report.content() if self._follower is not None and os.getpid() == self._pid else {}


def attach():
    """Called once torch has been imported. Says what is wrong and lets the job go on without the plan, if it cannot."""
    sources = []
    try:
        if "TIDEPOOL_LAYOUT" in os.environ:
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
