"""What may go wrong with a recording."""


class RecordingError(RuntimeError):
    """The program does something that a trace cannot say. The message names it, and what to do."""
