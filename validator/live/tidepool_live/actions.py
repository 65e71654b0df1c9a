"""Execution of a plan's actions on a live job's tensors."""

import contextlib

import torch


COUNTED = "run", "swap_out", "swap_in", "drop"  # the actions that a report counts


class Actions:
    """Executes actions of a plan on the contents of the job's buffers.

    plan      a LiveProgram
    device    the device of the tensors (CudaDevice or HostDevice)
    contents  the locations of versions (Contents)
    report    counts the actions that were done and those that were left out (Report)
    demand    makes room for what comes back (Demand)
    """

    def __init__(self, plan, device, contents, report, demand):
        self._plan, self._copies, self._contents, self._report = plan, device, contents, report
        self._demand = demand
        self.recipes = {}  # op of this iteration -> its Recipe
        self.pinned = set()  # trace buffers that an op which runs again needs

    def do(self, verb, subject):
        if verb == "run":
            done = self._run_again(subject)
        else:
            buffer = self._plan.buffer_of[subject]
            if buffer in self._plan.hidden:
                if verb in ("drop", "discard"):
                    self._stays(buffer)
                return
            done = getattr(self, "_" + verb)(subject, buffer)
        verb = "drop" if verb == "discard" else verb
        if verb not in COUNTED:
            return
        if done:
            self._report.count(verb)
        elif verb == "drop" and not self._contents.resizable(subject, self._plan.buffer_of[subject]):
            self._stays(self._plan.buffer_of[subject])
        else:
            self._report.left_out(verb, *self._why_not(verb, subject))

    def _stays(self, buffer):
        self._report.stays(buffer, self._plan.sizes[buffer])

    def _why_not(self, verb, subject):
        """The buffer of an action that could not be done, and the reason."""
        if verb == "run":
            made = next((use.buffer for use in self._plan.ops[subject].uses if use.after is not None), -1)
            return made, "its op did not run before in this step"
        buffer = self._plan.buffer_of[subject]
        held = self._contents.tensors.get(buffer)
        if held is None:
            return buffer, "the step has used no tensor as this one so far"
        return buffer, "its tensor has other content by now" if held.version != subject else "its tensor has ended"

    def _swap_out(self, version, buffer):
        return self._contents.swap_out(version, buffer)

    def _swap_in(self, version, buffer):
        if self._contents.only_on_host(version):
            self._demand.make_room(self._plan.sizes[buffer])
        return self._contents.swap_in(version, buffer)

    def _drop(self, version, buffer):
        return (self._can_compute(version) or self._is_kept(version, buffer)) and self._contents.drop(version, buffer)

    def _discard(self, version, buffer):
        """Drops content that the plan does not compute again: it brings the content back from the host, or no op of the trace
        reads it again, but code of the job may. By then, the inputs of its producer may be overwritten. So the host must have
        it, unless the job has freed it."""
        held = self._contents.tensors.get(buffer)
        if held is None or held.version != version:
            return self._drop(version, buffer)
        return self._is_kept(version, buffer) and self._contents.drop(version, buffer)

    def _is_kept(self, version, buffer):
        """Whether the host has the content; it is copied there if the job still holds it."""
        content = self._contents.of(version)
        if content is not None and content.host is not None:
            return True
        return buffer in self._contents.tensors and self._contents.swap_out(version, buffer)

    def _free(self, version, buffer):
        self._contents.end(version, buffer)

    def _await(self, version, buffer):
        self._contents.finish(version)

    def _copy(self, version, buffer):
        parent = self._plan.parent[version]
        self.require(parent)
        self._contents.copy(parent, version, buffer)

    def _can_compute(self, version):
        producer = self._plan.producer[version]
        return producer >= 0 and producer in self.recipes

    def _run_again(self, index):
        """Runs an op of this iteration again. Outputs that are resident already are kept, and the new ones freed."""
        recipe = self.recipes.get(index)
        if recipe is None:
            return False
        with self._pinned(use.buffer for use in recipe.arguments + recipe.made):
            self.require(*[use.before for use in recipe.arguments if use.before is not None])
            self._demand.make_room(sum(self._plan.sizes[use.buffer] for use in recipe.made))
            self._call_again(recipe)
        return True

    @contextlib.contextmanager
    def _pinned(self, buffers):
        """Within this context, the content of these trace buffers stays."""
        pinned, self.pinned = self.pinned, self.pinned | set(buffers)
        try:
            yield
        finally:
            self.pinned = pinned

    def _call_again(self, recipe):
        for use in recipe.arguments:
            if use.before is not None:
                self._contents.finish(use.before) if use.after is not None else self._contents.ready(use.before)
        state = self._copies.generator_state(recipe.generator) if recipe.state is not None else None
        if state is not None:
            self._copies.set_generator_state(recipe.state, recipe.generator)
        there = {use for use in recipe.arguments
                 if use.after is not None and self._contents.storage(use.after, use.buffer) is not None}
        try:
            with torch._C._DisableAutocast():  # the recorded arguments are cast already
                made = recipe.run(self._place_of)
        finally:
            if state is not None:
                self._copies.set_generator_state(state, recipe.generator)
        for use, storage in zip(recipe.made, made):
            if self._contents.storage(use.after, use.buffer) is None:
                self._contents.put(use.after, storage)
        for use in recipe.arguments:
            if use.after is None or use.before is None:
                continue
            if use not in there:
                self._contents.become(use.before, use.after)
            elif not self._contents.take_copy(use.after):
                self._contents.forget(use.before)  # the op has overwritten its storage again

    def _place_of(self, use):
        if use.before is not None and not (use.after is not None and self._contents.is_copy(use.after)):
            return self._contents.storage(use.before, use.buffer)
        if self._contents.storage(use.after, use.buffer) is None:  # the op overwrites the whole storage
            self._contents.put(use.after, self._contents.new_storage(self._plan.sizes[use.buffer]))
        return self._contents.storage(use.after, use.buffer)

    def require(self, *versions):
        """Makes versions resident: swaps them in or recomputes them. Other versions that this needs leave again after their
        last use, so it takes little more memory than the versions themselves."""
        ops = self._ops_for(versions)
        last = {use.before: op for op in ops for use in self.recipes[op].arguments}
        brought = {}  # version -> whether the contents knew it before
        for op in ops:
            recipe = self.recipes[op]
            for version in {each for use in recipe.arguments + recipe.made for each in (use.before, use.after)} - {None}:
                if self._contents.storage(version, self._plan.buffer_of[version]) is None:
                    brought.setdefault(version, self._contents.of(version) is not None)
            with torch._C._AutoDispatchBelowAutograd():
                self._run_again(op)
            for version in [each for each in brought if each not in versions and last.get(each, op) <= op]:
                if brought.pop(version):
                    self._contents.drop(version, self._plan.buffer_of[version])
                else:
                    self._contents.forget(version)
        with self._pinned(self._plan.buffer_of[version] for version in versions):
            for version in versions:
                self._swap_in(version, self._plan.buffer_of[version])

    def _ops_for(self, versions):
        """The ops to run again for these versions, in the order of the step."""
        ops, wanted = set(), list(versions)
        while wanted:
            version = wanted.pop()
            content = self._contents.of(version)
            if self._contents.storage(version, self._plan.buffer_of[version]) is not None:
                continue
            if content is not None and content.host is not None:
                continue
            if not self._can_compute(version):
                raise RuntimeError(f"tidepool_live: version {version} is gone and nothing can bring it back; "
                                   "please report the plan and the trace")
            producer = self._plan.producer[version]
            if producer not in ops:
                ops.add(producer)
                wanted += [use.before for use in self.recipes[producer].arguments if use.before is not None]
        return sorted(ops)

    def _held(self):
        """The versions that an action has used and that live tensors have now, with their trace buffers."""
        numbers = {version: self._plan.buffer_of[version] for version in self._contents.versions()}
        return {version: number for version, number in numbers.items() if self._contents.home(version, number) is not None}

    def lend(self, only=None):
        """Brings the content of all live tensors back for a while, or of those of one trace buffer. Returns what take_back()
        needs."""
        lent = []
        with torch._C._AutoDispatchBelowAutograd():
            held = {version: number for version, number in self._held().items() if only in (None, number)}
            there = {version for version, number in held.items() if self._contents.storage(version, number) is not None}
            self.require(*held)
            for version, number in held.items():
                self._contents.ready(version)
                if self._contents.fill_home(version, number) or version not in there:
                    lent.append((number, version, version in there))
        return lent

    def take_back(self, lent):
        """Content that lend() brought back leaves again, except that of tensors which have changed or ended since."""
        for number, version, was_there in lent:
            tensors = self._contents.tensors.get(number)
            if tensors is None or tensors.version != version or self._contents.of(version) is None:
                continue
            self._contents.empty_home(version, number)
            if not was_there:
                self._contents.drop(version, number)

    def settle(self, spared=(), stays=lambda version, number: False):
        """Brings the content of all live tensors back to their storages, except spared versions. stays: called with each version
        that is only on the host, and its buffer; returns whether it stays there in the care of another."""
        def held():
            return {version: number for version, number in self._held().items() if version not in spared}

        with torch._C._AutoDispatchBelowAutograd():
            gone = {version: number for version, number in held().items()
                    if self._contents.storage(version, number) is None and not self._contents.only_on_host(version)}
            for version in sorted(gone, key=self._plan.producer.__getitem__):
                self.require(version)
                if self._demand.lacks(0):  # the content waits on the host
                    self._contents.swap_out(version, gone[version])
                    self._contents.drop(version, gone[version])
            for version, number in held().items():  # other content may have left to make room
                if not self._contents.only_on_host(version) or not stays(version, number):
                    self._contents.restore_home(version, number)
            for version in self._contents.versions():
                if version not in spared:
                    self._contents.forget(version)
        self.recipes.clear()
