"""Compares the pointers among launch parameters with the storages that PyTorch's operators use by their schemas.

    pointers.py RUN.raw...      captures with --torch and --keep-raw

The schema's storages are those that the operator reads and writes by its schema. The recorder's storages are those to
which a parameter of the operator's launches points. Precision is the share of the recorder's storages that are the
schema's; recall is the share of the schema's storages that are the recorder's. An address in a
tensor that the operator does not use counts as one storage. Pointers to memory of no tensor (workspaces, tables) are
counted apart.
"""

import bisect
import collections
import json
import pathlib
import sys

import raw_records

BEGINS, ENDS = ("alloc", "existing"), ("free_requested", "free_completed")
TOLERANCE_NS = 20_000  # between the clocks of the recorders


class Clock:
    """Conversion of a file's times to CLOCK_MONOTONIC_RAW, by straight lines between the readings of both clocks."""

    def __init__(self, readings):
        self._readings = sorted((r.time, r.monotonic_raw) for r in readings)

    def common(self, time):
        if len(self._readings) < 2:
            return time - self._readings[0][0] + self._readings[0][1] if self._readings else time
        at = min(max(bisect.bisect(self._readings, (time, 0)), 1), len(self._readings) - 1)
        (t0, c0), (t1, c1) = self._readings[at - 1], self._readings[at]
        return c0 + (time - t0) * (c1 - c0) // (t1 - t0)


class Operators:
    """Operators by thread; of(thread, time) is the innermost operator of the thread at that time."""

    def __init__(self, records):
        self._threads = collections.defaultdict(list)
        for record in records:
            self._threads[record["thread"]].append(record)
        for calls in self._threads.values():
            calls.sort(key=lambda call: (call["start"], -call["end"]))
            around = []
            for call in calls:
                while around and around[-1]["end"] < call["end"]:
                    around.pop()
                call["around"] = around[-1] if around else None
                around.append(call)
        self._starts = {thread: [call["start"] for call in calls] for thread, calls in self._threads.items()}

    def of(self, thread, time):
        at = bisect.bisect(self._starts.get(thread, []), time) - 1
        call = self._threads[thread][at] if at >= 0 else None
        while call is not None and call["end"] < time:
            call = call["around"]
        return call


class Tensors:
    """PyTorch's allocations, found by an address and a time."""

    def __init__(self, records):
        self._at = collections.defaultdict(list)  # address: list of [begin, end, size], by begin
        for record in sorted(records, key=lambda record: record["time"]):
            spans = self._at[record["address"]]
            if record["action"] in BEGINS and not (spans and spans[-1][1] is None):
                spans.append([record["time"], None, record["size"]])
            elif record["action"] in ENDS and spans and spans[-1][1] is None:
                spans[-1][1] = record["time"]
        self._addresses = sorted(self._at)

    def holds(self, address, time):
        at = bisect.bisect(self._addresses, address)
        for begin in reversed(self._addresses[max(0, at - 64):at]):  # the nearest ones may be of ended tensors
            for start, end, size in self._at[begin]:
                if address < begin + size and start - TOLERANCE_NS <= time and (end is None or time <= end + TOLERANCE_NS):
                    return True
        return False


def framework_records(folder):
    records = collections.defaultdict(list)
    for path in sorted(pathlib.Path(folder).glob("*.torch.jsonl")):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                record = json.loads(line)
                records[record.get("kind")].append(record)
    return records


def score(folder):
    """Returns {operator: [storages of both, of the recorder alone, of the schema alone]}, and the number of pointers to no
    tensor."""
    framework = framework_records(folder)
    operators = Operators(framework["framework_op"])
    tensors = Tensors(r for r in framework["framework_memory"] if r["action"] in BEGINS + ENDS)
    pointed = {}  # id of an operator: (the operator, the pointers of its launches with their times)
    for path in sorted(set(pathlib.Path(folder).glob("*.raw"))):
        file = raw_records.read(path)
        clock = Clock(file["clock"])
        for launch, uses in zip(file["launch"], file["uses"]):
            time = clock.common(launch.start)
            call = operators.of(launch.thread, time)
            if call is not None and call.get("uses") and not launch.flags & 2:
                pointed.setdefault(id(call), (call, []))[1].extend((use.address, time) for use in uses)
    counts, elsewhere = collections.defaultdict(lambda: [0, 0, 0]), 0
    for call, pointers in pointed.values():
        spans = {(use[1], use[1] + max(use[2] if len(use) > 2 else 0, 1)) for use in call["uses"]}
        found = {span for span in spans if any(span[0] <= address < span[1] for address, _ in pointers)}
        others = {(address, time) for address, time in pointers if not any(b <= address < e for b, e in spans)}
        wrong = {address for address, time in others if tensors.holds(address, time)}
        elsewhere += len({address for address, _ in others} - wrong)
        for i, more in enumerate((len(found), len(wrong), len(spans) - len(found))):
            counts[call["name"]][i] += more
    return counts, elsewhere


def share(part, rest):
    return f"{100 * part / (part + rest):.1f} %" if part + rest else "-"


def report(folder):
    counts, elsewhere = score(folder)
    both, wrong, missed = (sum(count[i] for count in counts.values()) for i in range(3))
    print(f"{pathlib.Path(folder).stem}: precision {share(both, wrong)} ({both} of {both + wrong} storages that parameters point to "
          f"are used by the operator), recall {share(both, missed)} ({both} of {both + missed} that operators use); "
          f"{elsewhere} pointers to no tensor")
    for name, (found, other, lacks) in sorted(counts.items(), key=lambda item: -item[1][1] - item[1][2])[:5]:
        if other + lacks:
            print(f"    {name}: precision {share(found, other)}, recall {share(found, lacks)} of {found + lacks}")


if __name__ == "__main__":
    for run in sys.argv[1:]:
        report(run)
