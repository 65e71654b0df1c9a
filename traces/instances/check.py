#!/usr/bin/env python3
"""Checks the instances in this folder: that each plan is possible, and takes the time that its row says.

    check.py [NAME...]      checks these rows of instances.json, or all rows; exit code 1 if one is wrong

It needs Python 3.9 and nothing else. README.md says what an instance is. Times are whole nanoseconds, sizes bytes.
"""
import gzip
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


class Wrong(Exception):
    """An error in a plan, a step or a row."""


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def whole(action, key, below=None):
    """The whole number that an action has as `key`, at least 0."""
    value = action.get(key)
    if type(value) is not int or value < 0 or (below is not None and value >= below):
        raise Wrong(f"'{key}' is {json.dumps(value)}; expected a whole number" + (f" below {below}" if below else ""))
    return value


class Step:
    """An iteration: its ops with the versions that they read and make, in the order of the file (traces/FORMAT.md)."""

    def __init__(self, records):
        self.buffer, self.parent, self.view, self.initial = [], [], [], []  # by version
        self.size, self.before, self.freed, self.first = {}, {}, set(), {}  # by buffer
        self.reads, self.made, self.duration, self.source = [], [], [], []  # by op
        self.now = {}  # buffer: the version that is its content
        outputs = None
        for record in records[1:]:
            if "buffer" in record or "alloc" in record:
                buffer = record.get("buffer", record.get("alloc"))
                self.size[buffer] = record["size_bytes"]
                self.before[buffer] = bool(record.get("born_before"))
                if self.before[buffer]:
                    self.content(buffer)
            elif "run" in record:
                self.add_op(record)
            elif "free" in record:
                self.content(record["free"])
                self.freed.add(record["free"])
            elif "outputs" in record:
                outputs = record["outputs"]
            elif "output_buffers" in record:
                outputs = [self.content(buffer) for buffer in record["output_buffers"]]
            elif "mark" not in record and "losses" not in record and "forget" not in record:
                raise Wrong(f"a line with {', '.join(record)}; expected a line of FORMAT.md")
        alive = [self.content(buffer) for buffer in sorted(self.size) if buffer not in self.freed]
        self.outputs = {self.root(version) for version in (alive if outputs is None else outputs)}

    def add(self, buffer, parent, view=False, initial=False):
        self.buffer.append(buffer), self.parent.append(parent), self.view.append(view), self.initial.append(initial)
        if not view:
            self.now[buffer] = len(self.buffer) - 1
        return len(self.buffer) - 1

    def content(self, buffer):
        if buffer not in self.now:
            self.first[buffer] = self.add(buffer, None, initial=True)
        return self.now[buffer]

    def root(self, version):
        while self.view[version]:
            version = self.parent[version]
        return version

    def add_op(self, record):
        if record.get("stream", "0") != "0" or record.get("waits_for") or record.get("makes"):
            raise Wrong(f"op {len(self.reads)}: 'stream', 'waits_for' or 'makes'; expected a step without them")
        reads, new = [], {}
        for buffer, access, _, *through in record["uses"]:
            if access in ("read", "read_write", "touch", "view"):
                reads.append(self.root(through[0]) if through else self.content(buffer))
        for buffer, access, _, *through in record["uses"]:
            if access == "view":
                self.add(buffer, through[0] if through else self.content(buffer), view=True)
            elif access != "read" and buffer not in new:
                new[buffer] = self.add(buffer, self.now.get(buffer))
        self.reads.append(reads), self.made.append(list(new.values()))
        self.duration.append(record.get("duration_ns", 0)), self.source.append(record.get("kind") == "source")


class Place:
    """Where a version lies on the device, whether it is on the host, and when its last use ends."""

    def __init__(self):
        self.at = None  # (offset, end)
        self.filled = self.on_host = False
        self.ready = self.last_use = self.host_ready = 0


class Machine:
    """Replays a plan: one op after the other on the device, one copy after the other in each direction."""

    def __init__(self, step, links, capacity):
        self.step, self.links, self.capacity = step, links, capacity
        self.ops = self.to_device = self.to_host = 0  # when each lane is free
        self.in_use, self.left = {}, []  # {version: (offset, end)}; left places: (offset, end, free from)
        self.scratch = {}  # version that the next op makes a second time: ((offset, end), free from)
        self.iteration, self.next_op, self.places = 0, 0, [Place() for _ in step.buffer]
        self.from_host()

    def from_host(self):
        """Puts the new inputs of an iteration on the host; for the first iteration, everything that exists before."""
        for buffer, version in self.step.first.items():
            if self.step.before[buffer] and (self.iteration == 0 or buffer in self.step.freed):
                self.places[version].on_host = True

    def copy_time(self, direction, size):
        return self.links[direction + "_latency_ns"] - (-size * 10**9 // self.links[direction + "_bytes_per_second"])

    def take(self, version, action):
        offset, size = (whole({key: 0, **action}, key) for key in ("offset_bytes", "size_bytes"))
        end = offset + size
        if size < self.step.size[self.step.buffer[version]]:
            raise Wrong("the place is smaller than the version")
        if end > self.capacity:
            raise Wrong(f"the place ends at {end}, beyond the capacity")
        spare = [(other, place) for other, (place, _) in self.scratch.items()]
        for other, (first, last) in [*self.in_use.items(), *spare]:
            if first < end and offset < last:
                raise Wrong(f"the place overlaps version {other}")
        free = max((moment for first, last, moment in self.left if first < end and offset < last), default=0)
        return (offset, end), free

    def settle(self, version, action):
        place = self.places[version]
        if place.at:
            raise Wrong("it has a place")
        place.at, free = self.take(version, action)
        self.in_use[version] = place.at
        place.ready = place.last_use = free

    def leave(self, version):
        place = self.places[version]
        if place.at:
            self.left = [each for each in self.left if each[2] > self.ops]
            self.left.append((*place.at, max(place.ready, place.last_use)))
            del self.in_use[version]
        place.at, place.filled = None, False

    def alloc(self, version, action):
        place, buffer = self.places[version], self.step.buffer[version]
        if self.step.initial[version] and self.step.before[buffer]:
            if not place.on_host or self.next_op > 0 or (self.iteration > 0 and buffer not in self.step.freed):
                raise Wrong("its content can only be copied to the device")
        self.settle(version, action)
        if self.step.initial[version]:
            place.filled, place.on_host = True, False

    def begins_with(self, action):
        """Whether an action gives a place to an initial version, as the first actions of an iteration do."""
        version = action.get("version")
        return action.get("do") == "alloc" and version in range(len(self.places)) and self.step.initial[version]

    def run(self, op):
        if op > self.next_op or (op < self.next_op and self.step.source[op]):
            raise Wrong(f"op {self.next_op} is the next one")
        start = self.ops
        for version in self.step.reads[op]:
            if not self.places[version].filled:
                raise Wrong(f"its input, version {version}, is not there")
            start = max(start, self.places[version].ready)
        for version in self.step.made[op]:
            out, parent = self.places[version], self.step.parent[version]
            if out.at and not out.filled:
                start = max(start, out.ready)
            elif parent is not None:
                start = max(start, self.places[parent].last_use)
        start = max([start, *(free for _, free in self.scratch.values())])
        end = self.ops = start + self.step.duration[op]
        for version in self.step.reads[op]:
            self.places[version].last_use = max(self.places[version].last_use, end)
        for version in self.step.made[op]:
            self.write(version, end)
        if self.scratch:
            raise Wrong(f"version {next(iter(self.scratch))} has a scratch place and is not made")
        self.next_op = max(self.next_op, op + 1)

    def write(self, version, end):
        out, parent = self.places[version], self.step.parent[version]
        if out.filled and version in self.scratch:
            del self.scratch[version]
            return
        if not out.at or out.filled:  # written over the content that it replaces
            if parent is None or not self.places[parent].at:
                raise Wrong(f"its output, version {version}, has no place")
            if out.filled:
                self.leave(parent)
                return
            before = self.places[parent]
            out.at, before.at, before.filled, before.on_host = before.at, None, False, False
            self.in_use[version] = self.in_use.pop(parent)
        out.filled = True
        out.ready = out.last_use = end

    def do(self, action):
        verb = action.get("do")
        if verb == "run":
            return self.run(whole(action, "op", len(self.step.reads)))
        if verb == "next":
            return self.end_iteration()
        version = whole(action, "version", len(self.places))
        if self.step.view[version]:
            raise Wrong("it is a view")
        place = self.places[version]
        if verb == "alloc":
            self.alloc(version, action)
        elif verb == "scratch":
            if not place.filled:
                raise Wrong("it is not there")
            self.scratch[version] = self.take(version, action)
        elif verb in ("free", "drop"):
            if not place.filled and (verb == "drop" or not place.at and not place.on_host):
                raise Wrong("it is not there")
            self.leave(version)
            place.on_host = place.on_host and verb == "drop"
        elif verb == "swap_out":
            if not place.filled:
                raise Wrong("it is not there")
            begin = max(self.to_host, self.ops, place.ready)
            self.to_host = begin + self.copy_time("d2h", self.step.size[self.step.buffer[version]])
            place.last_use, place.host_ready, place.on_host = max(place.last_use, self.to_host), self.to_host, True
        elif verb == "swap_in":
            if not place.on_host:
                raise Wrong("it is not on the host")
            self.settle(version, action)
            begin = max(self.to_device, self.ops, place.host_ready, place.ready)
            self.to_device = begin + self.copy_time("h2d", self.step.size[self.step.buffer[version]])
            place.ready = place.last_use = self.to_device
            place.filled = True
        elif verb == "await":
            self.ops = max(self.ops, place.host_ready, place.ready if place.filled else 0)
        elif verb == "copy":
            self.copy(version)
        else:
            raise Wrong(f"{json.dumps(verb)} is not an action of these plans")
        return None

    def copy(self, version):
        place, parent = self.places[version], self.step.parent[version]
        if not place.at or place.filled or parent is None or not self.places[parent].filled:
            raise Wrong("it has no empty place, or the version that it replaces is not resident")
        begin = max(self.ops, place.ready, self.places[parent].ready)
        size = self.step.size[self.step.buffer[version]]
        self.ops = begin - (-size * 10**9 // self.links["device_copy_bytes_per_second"])
        self.places[parent].last_use = max(self.places[parent].last_use, self.ops)
        place.ready = place.last_use = self.ops

    def end_iteration(self):
        """Last content of buffers that exist before and after the step becomes initial; all other content is gone."""
        if self.next_op != len(self.step.reads):
            raise Wrong(f"op {self.next_op} has not run")
        for version in self.step.outputs:
            place = self.places[version]
            if (place.at and not place.filled) or not (place.filled or place.on_host):
                raise Wrong(f"version {version}, which outlives the step, is lost")
        stays = {self.step.now[buffer]: first for buffer, first in self.step.first.items()
                 if self.step.before[buffer] and buffer not in self.step.freed}
        old = self.places
        for version in [version for version in self.in_use if version not in stays]:
            self.leave(version)
        self.places = [Place() for _ in old]
        for last, first in stays.items():
            self.places[first] = old[last]
        self.in_use = {stays[version]: at for version, at in self.in_use.items()}
        self.iteration, self.next_op = self.iteration + 1, 0
        self.from_host()

    def ended(self):
        return max(self.ops, self.to_device, self.to_host)

    def state(self):
        """The state in which an iteration begins, without addresses. Times are counted from now; all past times are 0."""
        def later(moment):
            return max(0, moment - self.ops)
        stays = [self.places[version] for buffer, version in self.step.first.items()
                 if self.step.before[buffer] and buffer not in self.step.freed]
        return ([(place.filled, place.on_host, place.at and (later(place.ready), later(place.last_use)),
                  place.on_host and later(place.host_ready)) for place in stays],
                later(self.to_device), later(self.to_host),
                sorted((last - first, later(free)) for first, last, free in self.left if free > self.ops))


def iterations(actions):
    found = [[]]
    for action in actions:
        found[-1].append(action)
        if action.get("do") == "next":
            found.append([])
    found[-1].append({"do": "next"})
    return found


def check(row, step, plan):
    """@raises Wrong  if the plan is impossible (with the action), or a number of the row (time, bound, ...) is wrong"""
    if row["baseline_ns"] != sum(step.duration):
        raise Wrong(f"the ops take {sum(step.duration)} ns; the row says {row['baseline_ns']} ns")
    machine = Machine(step, row["machine"], row["capacity_bytes"])
    begins = []
    for part in iterations(plan):
        begin = machine.ended()
        for number, action in enumerate(part):
            if len(begins) == machine.iteration and not machine.begins_with(action):
                begins.append((begin, machine.state()))
            try:
                machine.do(action)
            except Wrong as wrong:
                raise Wrong(f"iteration {machine.iteration}, action {number}, {json.dumps(action)}: {wrong}") from None
    cycle = whole({"cycle_iterations": 1, **row}, "cycle_iterations", len(begins) + 1)
    if cycle == 0:
        raise Wrong("'cycle_iterations' is 0; expected at least 1")
    begin, state = begins[-cycle]
    if machine.state() != state:
        raise Wrong("the last iteration does not end in the state in which the cycle begins")
    took = (2 * (machine.ended() - begin) + cycle) // (2 * cycle)
    if took != row["time_ns"]:
        raise Wrong(f"takes {took} ns; the row says {row['time_ns']} ns")
    if took < row["bound_ns"]:
        raise Wrong(f"takes {took} ns, less than the bound of {row['bound_ns']} ns")


def main(names):
    rows = json.loads((HERE / "instances.json").read_text(encoding="utf-8"))
    unknown = set(names) - {row["name"] for row in rows}
    if unknown:
        sys.exit(f"check.py: no instance named {', '.join(sorted(unknown))}")
    steps, checked, wrong, close = {}, 0, 0, 0
    for row in rows:
        if names and row["name"] not in names:
            continue
        checked += 1
        try:
            if row["step"] not in steps:
                steps[row["step"]] = Step(lines(HERE / "steps" / f"{row['step']}.jsonl.gz"))
            check(row, steps[row["step"]], lines(HERE / "plans" / f"{row['name']}.jsonl.gz"))
        except Wrong as reason:
            wrong += 1
            print(f"{row['name']}: {reason}")
            continue
        gap = row["time_ns"] / row["bound_ns"] - 1
        close += gap <= 0.01
        print(f"{row['name']}: {row['time_ns']} ns, at most {gap:.2%} above the least")
    print(f"{checked} instances, {wrong} wrong, {close} within 1 % of their bounds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
