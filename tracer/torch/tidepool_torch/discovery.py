"""Finds the models and the optimizer of a script that knows nothing of us."""

import os

from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook


class Discovery:
    """Calls stepped(models, optimizer) each time the optimizer that steps first has stepped, in this process only.

    models  the outermost modules that were called before the first step
    """

    def __init__(self, stepped):
        self._stepped_hook = stepped
        self._pid = os.getpid()
        self._models = []
        self._optimizer = None
        self._module_hook = register_module_forward_pre_hook(self._called)
        self._step_hook = register_optimizer_step_post_hook(self._stepped)

    def stop(self):
        self._module_hook.remove()
        self._step_hook.remove()

    def in_process(self):
        """Whether this is the process that was attached to, not one that it forked."""
        return os.getpid() == self._pid

    def _called(self, module, _inputs):
        if not any(module is known for model in self._models for known in model.modules()):
            self._models.append(module)

    def _stepped(self, optimizer, _args, _kwargs):
        if not self.in_process() or self._optimizer not in (None, optimizer):
            return
        if self._optimizer is None:
            self._optimizer = optimizer
            self._module_hook.remove()
        self._stepped_hook(self._models, optimizer)
