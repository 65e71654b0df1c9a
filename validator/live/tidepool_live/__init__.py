"""Executes Tidepool plans on live PyTorch training jobs: see README.md. `tidepool run` starts it."""

from .choice import follower_for
from .follower import Follower
from .program import LiveProgram, ProgramError

__all__ = ["Follower", "LiveProgram", "ProgramError", "follower_for"]
__version__ = "0.2.0"
