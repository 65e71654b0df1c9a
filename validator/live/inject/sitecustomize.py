"""Python imports this module when it starts, because `tidepool run` and `tidepool record --torch` put its folder first
on the path. It attaches Tidepool when the program has imported torch. The user's own sitecustomize runs too."""

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys


def _run_users_own():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Leaves the search for torch to the other finders, and attaches when torch has been loaded."""

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                _attach()

            spec.loader.exec_module = exec_module
        return spec


def _say_last():
    """Writes the exception that ended the program to a file beside the raw files; `tidepool record` prints it."""
    value = getattr(sys, "last_value", None)
    folder = os.environ["TIDEPOOL_RAW"]
    if value is None or os.getpid() != _PROCESS or not os.path.isdir(folder):
        return
    try:
        with open(os.path.join(folder, f"{_PROCESS}.said"), "w", encoding="utf-8") as file:
            words = str(value).partition("\n")[0]
            file.write(type(value).__name__ + (f": {words}" if words else "") + "\n")
    except (OSError, UnicodeError):
        pass


def _attach():
    if "TIDEPOOL_RECORD_TORCH" in os.environ:
        from tidepool_torch.live import attach

        attach()
    if "TIDEPOOL_LIVE_REPORT" in os.environ:
        from tidepool_live.session import attach

        attach()


if "TIDEPOOL_RECORD_TORCH" in os.environ or "TIDEPOOL_LIVE_REPORT" in os.environ:
    sys.meta_path.insert(0, _AfterTorch())
if "TIDEPOOL_RECORD_TORCH" in os.environ and "TIDEPOOL_RAW" in os.environ:
    _PROCESS = os.getpid()
    atexit.register(_say_last)
try:
    _run_users_own()
except Exception as error:  # as Python's own site module does
    print(f"sitecustomize: {type(error).__name__}: {error}", file=sys.stderr)
