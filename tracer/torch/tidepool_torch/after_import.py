"""Changes of modules that the job may import later."""

import functools
import importlib.util
import sys


def after_import(names, change):
    """Calls change(name, module) for each of these modules: now if it is imported, else behind its execution."""
    for name in names:
        if name in sys.modules:
            change(name, sys.modules[name])
    sys.meta_path.insert(0, _Finder(set(names) - sys.modules.keys(), change))


def replace(owner, name, function):
    """@throws AttributeError  if there is nothing of this name"""
    setattr(owner, name, functools.wraps(getattr(owner, name))(function))


class _Finder:
    def __init__(self, names, change):
        self._names, self._change = names, change
        self._searched = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self._names or name in self._searched:
            return None
        self._searched.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searched.discard(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                self._change(name, module)

            spec.loader.exec_module = exec_module
        return spec
