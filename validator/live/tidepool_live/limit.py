"""The limit of the memory that a job may use under a plan."""

import torch


NO_LIMIT = 2**63 - 1


class Limit:
    """size: bytes, or None for no limit. meter: counts the job's bytes on a device that cannot limit them."""

    def __init__(self, size, device, meter, report):
        self._size, self._device, self._meter, self._report = size, device, meter, report

    def begin(self):
        """Lets the device limit the memory, if it can. Returns the bytes that are to be compared from now on."""
        if self._size is None or self._device.limit(self._size):
            self._size = None
        return NO_LIMIT if self._size is None else self._size

    def require(self):
        """Raises an out-of-memory error, as a device of the limited size does, if the job uses more memory."""
        size = self._size
        if size is None or not self._report.steady:
            return
        if self._device.limit(size):
            self._size = None
        elif self._meter.now > size:
            self._size = None  # raised once: code that runs while the job ends may need more memory
            self._report.out_of_memory(self._meter.now)
            raise torch.cuda.OutOfMemoryError(
                f"tidepool run --enforce: {self._meter.now} bytes are in use; the plan's limit is {size}")
