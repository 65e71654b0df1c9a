"""Detection of torch.compile in a script. torch.compile replaces the ops that a dispatch mode sees."""

import functools
import sys

import torch


class CompileWatch:
    """Tells whether torch.compile was called or has compiled anything. Calls begun() before the first call of
    torch.compile."""

    REASON = "torch.compile replaces the ops"

    def __init__(self, begun=lambda: None):
        self._called = False
        compile = torch.compile

        @functools.wraps(compile)
        def watched(*args, **kwargs):
            if not self._called:
                self._called = True
                begun()
            return compile(*args, **kwargs)

        self._watched, self._compile = watched, compile
        torch.compile = watched

    def stop(self):
        if torch.compile is self._watched:
            torch.compile = self._compile

    def compiles(self):
        dynamo = sys.modules.get("torch._dynamo.utils")
        return self._called or (dynamo is not None and dynamo.counters["frames"]["ok"] > 0)
