"""Records real PyTorch training steps as Tidepool traces, without a GPU: see README.md."""

from .devices import DEVICES
from .errors import RecordingError
from .gpu_forms import fake_copy, fake_tensors
from .recorder import Recorder
from .steps import record_steps

__all__ = ["DEVICES", "Recorder", "RecordingError", "fake_copy", "fake_tensors", "record_steps"]
__version__ = "0.2.0"
