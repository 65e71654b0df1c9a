"""The line of the user's code that runs now, as in model.py:88."""

import functools
import os
import sys
import sysconfig

import torch

# Folders whose code is not the user's: Python's own, those of installed packages, PyTorch's and this package's.
_FOREIGN = tuple({os.path.join(folder, "") for folder in (
    *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
    *torch.__path__, os.path.dirname(__file__), *filter(None, [os.environ.get("TORCHINDUCTOR_CACHE_DIR")]))})
# Parts of paths that mark packages of other environments, and files that a compiler made.
_FOREIGN_PARTS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", f"{os.sep}torchinductor_")


class UserLine:
    """Finds the innermost frame of the user's code. Each frame that is searched costs some tens of nanoseconds."""

    def __init__(self):
        self._is_user = {}  # file -> whether its code is the user's
        self._texts = {}  # (file, line) -> text

    def now(self):
        """The line, as in model.py:88; "" if no code of the user's runs, as on a thread that autograd started."""
        is_user = self._is_user
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            user = is_user.get(file)
            if user is None:
                user = is_user[file] = is_user_code(file)
            if user:
                return self._text(file, frame.f_lineno or frame.f_code.co_firstlineno)
            frame = frame.f_back
        return ""

    def _text(self, file, line):
        text = self._texts.get((file, line))
        if text is None:
            text = self._texts[file, line] = f"{os.path.basename(file)}:{line}"
        return text


def is_user_code(file):
    """Whether a file, as code objects name it, is the user's: a script, a module that is not installed, or the cell of
    a notebook."""
    if file.startswith("<"):
        return file == "<stdin>" or file.startswith("<ipython-input")
    if file.startswith(_FOREIGN) or any(part in file for part in _FOREIGN_PARTS):
        return False
    return not any(isinstance(folder, str) and folder and file.startswith(os.path.join(folder, ""))
                   and _holds_packages(folder) for folder in sys.path)


@functools.cache
def _holds_packages(folder):
    """Whether packages are installed in a folder of sys.path, as with `pip install --target`."""
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False
