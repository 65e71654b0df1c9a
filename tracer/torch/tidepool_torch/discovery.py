"""Finds the models and the optimizers of an unchanged script."""

import gc
import os
import weakref

import torch
from torch.nn import Module
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook


class Discovery:
    """Calls stepped(optimizer) after each step of one optimizer, in this process only: of the first one after whose step
    no other optimizer lacks state, since its step ends a round of them (in a GAN, the generator's), or of one that steps
    again before the others have stepped. If a gradient's hook calls an optimizer within a backward pass, its step is a
    part of that pass."""

    def __init__(self, stepped):
        self._stepped_hook = stepped
        self._pid = os.getpid()
        self._optimizer = None
        self._begun = False  # whether stepped() was called
        self._stepping = weakref.WeakSet()  # optimizers that have stepped
        self._step_hook = register_optimizer_step_post_hook(self._stepped)

    def stop(self):
        self._step_hook.remove()
        self._optimizer = None  # the script may have no other reference to it

    def in_process(self):
        """Whether this is the process that was attached to, not one that it forked."""
        return os.getpid() == self._pid

    def _stepped(self, optimizer, _args, _kwargs):
        if not self.in_process() or _in_backward():
            return
        is_new = optimizer not in self._stepping
        self._stepping.add(optimizer)
        if is_new and not self._begun:
            self._optimizer = optimizer
            if _others_will_step(optimizer):
                return
        if self._optimizer is optimizer:
            self._begun = True
            self._stepped_hook(optimizer)

    def optimizers(self):
        """Those that have stepped, the one whose steps end iterations at the begin."""
        return sorted(self._stepping, key=lambda optimizer: optimizer is not self._optimizer)


def _in_backward():
    return torch._C._current_graph_task_id() != -1


def _others_will_step(optimizer):
    """Whether there are optimizers of other parameters without state. (One of the same parameters wraps this one.)"""
    own = _parameters(optimizer)
    others = [each for each in gc.get_objects() if issubclass(type(each), Optimizer) and each is not optimizer]
    return any(_parameters(other) and not own & _parameters(other) and not getattr(other, "state", None) for other in others)


def _parameters(optimizer):
    return {id(parameter) for group in getattr(optimizer, "param_groups", ()) for parameter in group["params"]}


def outermost_modules(optimizer):
    """The modules that are not inside another module, those with parameters of the optimizer first. Hooks on module
    calls would find them too, but torch.compile would compile such hooks."""
    modules = [each for each in gc.get_objects() if issubclass(type(each), Module)]
    inner = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
    trained = _parameters(optimizer)
    outer = [module for module in modules if id(module) not in inner]
    return sorted(outer, key=lambda module: not any(id(parameter) in trained for parameter in module.parameters()))
