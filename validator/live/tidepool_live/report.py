"""Measurements of a live run, and its deviations from the recorded step."""

import collections
import json
import os
import statistics
import time

from .steps import Steps

LEARNING = 2  # iterations until the whole plan is carried out
KEPT = 1000  # iterations and deviations that are reported one by one


class Report:
    """Numbers of the iterations that ran as recorded. The first two of them, and the first two after unlearn(), show which
    tensors outlive a step; the others are measured (`steady`)."""

    def __init__(self, plan):
        self._plan = plan
        self._counts, self._left_out = collections.Counter(), collections.Counter()
        self._each = []  # the first iterations
        self._times, self._peak, self._between_peak = [], 0, 0  # of all steady iterations: ns, bytes
        self._first_between = ""  # the first op that is not in the trace, where this peak was measured
        self._staying, self._most_staying = {}, 0  # trace buffer -> bytes, in this iteration; the largest sum
        self._allocator_peaks, self._peaks_started = collections.Counter(), False
        self._count = self._learnt = 0
        self._pending = collections.deque()  # times not yet read from the device: entry, number, two events
        self._lost = []
        self._lost_count = 0
        self._gave_up = self._disturbed = False
        self._stopped = self._out_of_memory = None
        self._started = None
        self._clock = None
        self._before = (0, 0)
        self._first_left_out = None
        self.steps, self._unlike_steps = Steps(), []
        self._unlike = self._between_unlike = False  # a step since the last followed one was unlike the recorded one
        self._meter, self._within, self._first_other = None, lambda: False, lambda: ""

    def watch(self, meter, within, first_other):
        """meter: counts the bytes of the job. within: tells whether the job is within a step that was followed so far.
        first_other: the first op since the last such step, or ""."""
        self._meter, self._within, self._first_other = meter, within, first_other

    @property
    def steady(self):
        return self._learnt >= LEARNING

    def count(self, what):
        self._counts[what] += 1

    def left_out(self, what, buffer, reason):
        """An action of the plan on a trace buffer could not be done. Not counted in the first two iterations, nor in the first step after
        a deviation, in which other tensors may outlive the step before."""
        if self.steady and not self._disturbed:
            self._first_left_out = self._first_left_out or {"verb": what, "buffer": buffer, "reason": reason}
            self._left_out[what] += 1

    def stays(self, buffer, size):
        """A drop freed no memory, since the buffer's memory does not come from the allocator."""
        self.count("stays")
        self._staying[buffer] = size

    def begin(self, meter, between, clock):
        """The first op of a step has been matched. between: the first op that ran since the last step, or "". clock: reads
        the device's clock, if it has one."""
        self.steps.begin()
        if self._started is None or between:
            self._count_between(meter, between)
            self._started, self._clock = time.perf_counter_ns(), clock()
            meter.start()

    def _count_between(self, meter, first):
        if self.steady and meter.peak > self._between_peak:
            self._between_peak, self._first_between, self._between_unlike = meter.peak, first, self._unlike

    def finish(self, meter, clock, contents, others):
        """A step has ended, and all of it ran as recorded. others: the ops that ran within it and are not in the trace. With
        many of them (an evaluation), time and peak are not those of a step."""
        now = time.perf_counter_ns()
        out, back = contents.copied_out, contents.copied_in
        entry = {"time_ns": now - self._started, "peak_bytes": meter.peak, "swap_out_bytes": out - self._before[0],
                 "swap_in_bytes": back - self._before[1]}
        if len(self._each) < KEPT:
            self._each.append(entry)
        number = -1
        if others.many:
            self._count_between(meter, others.first)
        elif self.steady:
            number = len(self._times)
            self._times.append(entry["time_ns"])
            self._peak = max(self._peak, meter.peak)
            self._most_staying = max(self._most_staying, sum(self._staying.values()))
        if clock is not None and self._clock is not None:
            self._pending.append((entry, number, self._clock, clock))
        self._count += 1
        self._learnt += 1
        self._disturbed = self._unlike = False
        self._staying = {}
        while self._pending and self._pending[0][-1].query():
            self._settle()
        self._started, self._clock, self._before = now, clock, (out, back)
        meter.start()

    def count_peaks(self, device):
        """Counts the peaks of PyTorch's allocator in and between steady iterations. Called at the end of a step."""
        if not self.steady:
            return
        if not self._peaks_started:
            device.start_peaks()
            self._peaks_started = True
            return
        self._allocator_peaks |= collections.Counter(device.peaks())  # the larger of both

    def _settle(self):
        entry, number, before, after = self._pending.popleft()
        after.synchronize()
        entry["time_ns"] = round(before.elapsed_time(after) * 1e6)
        if number >= 0:
            self._times[number] = entry["time_ns"]

    def lost(self, index, expected, saw):
        self._disturbed = self._unlike = True
        self._started = self._clock = None
        self._peaks_started = False
        self._lost_count += 1
        if len(self._lost) < KEPT:
            self._lost.append({"step": self.steps.number, "op": index, "expected": expected, "saw": saw})

    def unlearn(self):
        """The tensors that outlive a step are no longer known: the next two iterations are not measured."""
        self._learnt = 0

    def gave_up(self):
        self._gave_up = True

    def stopped(self, reason):
        """The plan could not be followed further; the job continues without it."""
        self._stopped = reason

    def out_of_memory(self, used):
        """The job used more bytes than its limit and got an out-of-memory error."""
        self._out_of_memory = used

    def close(self):
        """The plan is not followed from now on."""
        if self._meter is None:
            return
        within = self._within()
        if not within:
            self._count_between(self._meter, self._first_other())
        self._unlike_steps = self.steps.unlike(within)
        self._meter = None

    def content(self):
        """The report as one dictionary. The time is the median and the peak the largest of the measured iterations."""
        while self._pending:
            self._settle()
        self.close()
        content = {"tidepool_live_report": 1, "trace_hash": self._plan.trace_hash, "pid": os.getpid(),
                   "iterations": self._count, "deviations": self._lost_count, "gave_up": self._gave_up,
                   "counts": dict(self._counts), "left_out": dict(self._left_out), "lost": self._lost,
                   "measured": len(self._times)}
        if self._times:
            content["time_ns"] = round(statistics.median(self._times))
            content["peak_bytes"] = self._peak
        content.update(self._allocator_peaks)
        content.update({"unlike": len(self._unlike_steps), "unlike_steps": self._unlike_steps[:KEPT]})
        if self._between_peak:
            content["between_peak_bytes"] = self._between_peak
            content["between_unlike"] = self._between_unlike
        if self._first_between:
            content["between_op"] = self._first_between
        if self._first_left_out:
            content["left_out_first"] = self._first_left_out
        if self._most_staying:
            content["stays_bytes"] = self._most_staying
        if self._stopped is not None:
            content["stopped"] = self._stopped
        if self._out_of_memory is not None:
            content["out_of_memory_bytes"] = self._out_of_memory
        content["each"] = self._each
        return content


def save_report(content, path):
    """Writes the report. A reader never sees an incomplete one."""
    partial = f"{path}.{os.getpid()}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(partial, path)
