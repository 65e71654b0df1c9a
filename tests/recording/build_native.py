"""Builds what the recorder of PyTorch compiles at its first use. Then no other test waits for it, or is told that it is built."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tracer/torch"))

try:
    from tidepool_torch.native import VALUES, NativeError, library
except ImportError as error:
    print(f"PyTorch is not installed ({error}): nothing to build")
    sys.exit(0)

try:
    print(library())
    print(library(sources=VALUES))
except NativeError as error:
    print(f"not built: {error}")
