"""Python imports this module when it starts, because `tidepool run`, `tidepool record --torch` and `--dry` put its folder
first on the path. It attaches Tidepool when torch has been executed. Then it makes room: the user's own sitecustomize runs and
is the one that the job can import, and Tidepool's folders are not on the job's path."""

import atexit
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types


class AtTorch:
    """The first finder of modules. It leaves each search to the finders behind it, and calls attach() once, when torch has
    been executed: at once if a search for torch went through this finder, whoever asked and however often; otherwise with the
    job's next import."""

    def __init__(self, attach):
        self._attach = attach
        self._executing = 0

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            if self._executing == 0 and _is_executed():
                self._done()
            return None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1:]:
            search = getattr(finder, "find_spec", None)
            spec = search(name, path, target) if search else None
            if spec is not None:
                self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type):
            return

        def exec_module(module):
            self._executing += 1
            try:
                execute(module)
            finally:
                self._executing -= 1
                if vars(loader).get("exec_module") is exec_module:
                    del loader.exec_module
            if module.__name__ == "torch":
                self._done()

        try:
            loader.exec_module = exec_module
        except AttributeError:  # it has slots
            pass

    def _done(self):
        if self in sys.meta_path:
            # A new list, because another thread may be in its loop over the old one.
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
            self._attach()


def _is_executed():
    module = sys.modules.get("torch")
    if type(module) is not types.ModuleType:  # none, or one that is executed when it is first used
        return False
    spec, begun = vars(module).get("__spec__"), any(not name.startswith("__") for name in vars(module))
    return begun and spec is not None and spec.loader is not None and not getattr(spec, "_initializing", False)


def _take_folders():
    """Takes this folder and the one of Tidepool's packages off the path, as often as commands within commands have put them
    there. Returns the latter. Children of the job find both in PYTHONPATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    if here not in others:  # the job has changed it
        return os.path.dirname(here)
    while here in others:
        at = others.index(here)
        ours, others = others[at:at + 2], others[:at] + others[at + 2:]
    sys.path[:] = [folder for folder in sys.path if (path := os.path.abspath(folder)) not in ours or path in others]
    return ours[-1]


def _load(package, module):
    """A module of one of Tidepool's packages, which are not on the path."""
    if package not in sys.modules:
        spec = importlib.machinery.PathFinder.find_spec(package, [_PACKAGES])
        sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
    return importlib.import_module(f"{package}.{module}")


def _say_last():
    """Writes the exception that ended the program to a file beside the raw files; `tidepool record` prints it."""
    value = getattr(sys, "last_value", None)
    folder = os.environ.get("TIDEPOOL_RAW", "")
    if value is None or os.getpid() != _PROCESS or not os.path.isdir(folder):
        return
    try:
        with open(os.path.join(folder, f"{_PROCESS}.said"), "w", encoding="utf-8") as file:
            words = str(value).partition("\n")[0]
            file.write(type(value).__name__ + (f": {words}" if words else "") + "\n")
    except (OSError, UnicodeError):
        pass


def _attach():
    try:
        packages = [_load("tidepool_torch", "values")] if "TIDEPOOL_ROUTING" in os.environ else []
        if "TIDEPOOL_RECORD_TORCH" in os.environ:
            packages.append(_load("tidepool_torch", "live"))
        if "TIDEPOOL_LIVE_REPORT" in os.environ:
            _load("tidepool_torch", "errors")
            packages.append(_load("tidepool_live", "session"))
        if "TIDEPOOL_DRY_DEVICE" in os.environ:
            packages += [_load("tidepool_torch", name) for name in ("dry_tuning", "dry_allocator")]
        if "TIDEPOOL_APPLY" in os.environ:
            packages.append(_load("tidepool_torch", "applied_change"))
        for package in packages:
            package.attach()
    except Exception as error:  # for instance, because the job's torch is another module of that name
        try:
            print(f"tidepool: {type(error).__name__}: {error}; the job runs without Tidepool", file=sys.stderr, flush=True)
        except (AttributeError, OSError, ValueError):  # the job has no stderr
            pass


_PACKAGES = _take_folders()
_ATTACHING = {"TIDEPOOL_RECORD_TORCH", "TIDEPOOL_LIVE_REPORT", "TIDEPOOL_DRY_DEVICE"}
if not _ATTACHING.isdisjoint(os.environ):
    sys.meta_path.insert(0, AtTorch(_attach))
if not {"TIDEPOOL_RECORD_TORCH", "TIDEPOOL_DRY_DEVICE"}.isdisjoint(os.environ) and "TIDEPOOL_RAW" in os.environ:
    _PROCESS = os.getpid()
    atexit.register(_say_last)
# Of a user without a sitecustomize, Python ignores the ImportError, and this module is forgotten.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401
