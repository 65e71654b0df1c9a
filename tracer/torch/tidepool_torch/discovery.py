"""Finds the models and the optimizer of an unchanged script."""

import gc
import os

import torch
from torch.nn import Module
from torch.optim.optimizer import register_optimizer_step_post_hook


class Discovery:
    """Calls stepped(optimizer) after each step of the optimizer that stepped first, in this process only. If a
    gradient's hook calls an optimizer within a backward pass, its step is a part of that pass."""

    def __init__(self, stepped):
        self._stepped_hook = stepped
        self._pid = os.getpid()
        self._optimizer = None
        self._step_hook = register_optimizer_step_post_hook(self._stepped)

    def stop(self):
        self._step_hook.remove()
        self._optimizer = None  # the script may have no other reference to it

    def in_process(self):
        """Whether this is the process that was attached to, not one that it forked."""
        return os.getpid() == self._pid

    def _stepped(self, optimizer, _args, _kwargs):
        if not self.in_process() or self._optimizer not in (None, optimizer) or _in_backward():
            return
        self._optimizer = optimizer
        self._stepped_hook(optimizer)


def _in_backward():
    return torch._C._current_graph_task_id() != -1


def outermost_modules(optimizer):
    """The modules that are not inside another module, those with parameters of the optimizer first. Hooks on module
    calls would find them too, but torch.compile would compile such hooks."""
    modules = [each for each in gc.get_objects() if issubclass(type(each), Module)]
    inner = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
    trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    outer = [module for module in modules if id(module) not in inner]
    return sorted(outer, key=lambda module: not any(id(parameter) in trained for parameter in module.parameters()))
