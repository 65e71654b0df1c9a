"""Copies between a device and the host, on separate streams, ordered by events. The CPU and a GPU have the same
interface, so that tests on the CPU run the code that a GPU runs."""

from concurrent.futures import ThreadPoolExecutor

import torch


# Within the job's inference mode, tensors are made that no other mode and no other thread can write.
_writable = torch.inference_mode(False)


@_writable
def bytes_of(storage):
    """All of a storage as a tensor of bytes that shares its memory."""
    if not isinstance(storage, torch.UntypedStorage):
        return storage.as_bytes()
    tensor = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return tensor.set_(storage, 0, (storage.nbytes(),), (1,))


AT_ONCE = 1 << 20  # bytes: a thread takes longer to begin than such a copy takes


class _Done:
    """The event at the end of a copy that was made at once."""

    @staticmethod
    def result():
        return None


class HostDevice:
    """The CPU as a device: each copy stream is a thread, an event is a future. Small copies need no thread."""

    name = "cpu"
    where = torch.device("cpu")

    def __init__(self):
        self._streams = {lane: ThreadPoolExecutor(1, f"tidepool-{lane}") for lane in ("out", "in")}

    def host_bytes(self, size):
        """Memory on the host. It is a storage, since a job may count the tensors of its process."""
        return torch.empty(size, dtype=torch.uint8).untyped_storage()

    def copy(self, lane, target, source, after=None):
        """Starts a copy on stream `lane` ("out" or "in") after event `after`. Returns the event at the copy's end."""
        if source.nbytes < AT_ONCE:
            if after is not None:
                after.result()
            target.copy_(source)
            return _Done
        tensors = [(target, source)]

        def work():
            if after is not None:
                after.result()
            to, of = tensors.pop()  # the thread keeps `work` for a moment after the event, but no memory
            to.copy_(of)

        return self._streams[lane].submit(work)

    def wait(self, event):
        """The compute stream waits for the event."""
        event.result()

    def generator_state(self, generator=None):
        """The state of a generator of random numbers; None: the default one."""
        return (generator or torch.default_generator).get_state()

    def set_generator_state(self, state, generator=None):
        (generator or torch.default_generator).set_state(state)

    def limit(self, size):
        """Limits the memory of the process to `size` bytes. Returns whether that is possible: not on the CPU."""
        return False

    def start_peaks(self):
        """Peaks of PyTorch's allocator count from now on."""

    def peaks(self):
        """The peaks of PyTorch's allocator in bytes, by key of the report; {} if it keeps none."""
        return {}

    def clock(self):
        return None  # ops end before the host continues: the host's clock is exact


class CudaDevice:
    """A GPU: copies on two streams of their own, events of CUDA, pinned host memory."""

    def __init__(self, index):
        self.where = torch.device("cuda", index)
        self.name = torch.cuda.get_device_name(self.where)
        self._streams = {lane: torch.cuda.Stream(self.where) for lane in ("out", "in")}

    def host_bytes(self, size):
        return torch.empty(size, dtype=torch.uint8, pin_memory=True).untyped_storage()

    def copy(self, lane, target, source, after=None):
        """As HostDevice.copy. The copy also waits for all work issued to the compute stream so far: ops that write the
        source, and earlier users of the target's memory."""
        stream = self._streams[lane]
        stream.wait_stream(torch.cuda.current_stream(self.where))
        if after is not None:
            stream.wait_event(after)
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
            return stream.record_event()

    def wait(self, event):
        torch.cuda.current_stream(self.where).wait_event(event)

    def generator_state(self, generator=None):
        return torch.cuda.get_rng_state(self.where) if generator is None else generator.get_state()

    def set_generator_state(self, state, generator=None):
        torch.cuda.set_rng_state(state, self.where) if generator is None else generator.set_state(state)

    def limit(self, size):
        torch.cuda.empty_cache()  # memory reserved before may be more than the limit
        total = torch.cuda.get_device_properties(self.where).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, size / total), self.where)
        return True

    def start_peaks(self):
        torch.cuda.empty_cache()  # memory reserved by iterations without the plan is no part of its peak
        try:
            torch.cuda.reset_peak_memory_stats(self.where)
        except RuntimeError:  # a pluggable allocator has no statistics
            pass

    def peaks(self):
        try:
            stats = torch.cuda.memory.memory_stats_as_nested_dict(self.where)
        except RuntimeError:
            return {}
        return {f"{key}_peak_bytes": stats[f"{key}_bytes"]["all"]["peak"] for key in ("allocated", "reserved")}

    def clock(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.where))
        return event


def device_for(parameters):
    """The device that a model's parameters are on."""
    for parameter in parameters:
        if parameter.device.type == "cuda":
            return CudaDevice(parameter.device.index or 0)
    return HostDevice()
