"""Errors of a recording."""


class RecordingError(RuntimeError):
    """The program does something that a trace cannot represent. The message names it, and what a recording needs."""
