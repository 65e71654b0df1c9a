"""The plan in the form that `tidepool run` writes: the expected ops, and the actions before each."""

import json
from dataclasses import dataclass


BLOCK = 512  # bytes: PyTorch's allocator for GPUs rounds sizes up to multiples of it


class ProgramError(ValueError):
    """The file does not have the form that `tidepool run` writes."""


@dataclass(frozen=True)
class Use:
    """One use of a buffer: the version read (None for "write") and the version written (None for "read")."""

    buffer: int
    before: object
    after: object
    access: str

    @property
    def version(self):
        """The version that the op reads, or the one that it writes if it reads none."""
        return self.after if self.before is None else self.before


@dataclass(frozen=True)
class ExpectedOp:
    """An op of the recorded step. `recipe`: the plan may run it again to recompute a dropped version."""

    name: str
    uses: tuple
    signature: tuple
    recipe: bool
    random: bool


class LiveProgram:
    """Ops in order, sizes of buffers in bytes, versions, and the actions before each op.

    If all sizes are multiples of BLOCK, the recorder saw rounded sizes. Then sizes of the live job are rounded up to
    multiples of BLOCK before they are compared.

    native      whether the native core recorded the ops: a dispatch mode that is on would change some of them
    parked      versions that the plan expects on the host when the step begins
    limit       bytes that the plan promises not to exceed
    made        bytes of the storages that each op makes or overwrites as a whole
    hidden      buffers that the job cannot see, such as workspaces of libraries
    actions[i]  (verb, subject) before op i; the last entry has the actions after the last op. A "drop" of a version whose
                producer does not run again next is a "discard".
    """

    def __init__(self, content):
        if content.get("tidepool_live") != 1:
            raise ProgramError(f"'tidepool_live' is {content.get('tidepool_live')!r}; expected 1")
        self.trace_hash = content["trace_hash"]
        self.native = content.get("recorded_ops") == "native"
        self.predicted = content["predicted"]
        self.limit = content["limit_bytes"]
        self.sizes = [size for size, _ in content["buffers"]]
        self.unit = BLOCK if all(size % BLOCK == 0 for size in self.sizes) else 1
        self.first_version = [version for _, version in content["buffers"]]
        self.buffer_of = [buffer for buffer, _, _ in content["versions"]]
        self.producer = [op for _, op, _ in content["versions"]]
        self.parent = [parent for _, _, parent in content["versions"]]
        self.parked = set(content["parked"])
        self.hidden = set(content["hidden"])
        self.ops = [self._op(op) for op in content["ops"]]
        self.actions = [[] for _ in range(len(self.ops) + 1)]
        actions = list(self._with_discards(content["actions"]))
        for before, verb, subject in self._effective(actions):
            self.actions[before].append((verb, subject))
        self._unused = {name: buffer for buffer, name in content["unused"]}
        used = {use.buffer for op in self.ops for use in op.uses}
        self.made = [sum(self.sizes[use.buffer] for use in op.uses if use.before is None) for op in self.ops]
        self.idle = [(before, self.buffer_of[subject]) for before, verb, subject in actions
                     if verb == "free" and self.buffer_of[subject] not in used]

    def _effective(self, actions):
        """The actions that do something: the end of a version that no action moves does not."""
        moved = {subject for _, verb, subject in actions if verb not in ("run", "free", "await")}
        moved.update(use.after for _, verb, subject in actions if verb == "run" for use in self.ops[subject].uses)
        return [action for action in actions if action[1] == "run" or action[2] in moved]

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as file:
            return cls(json.load(file))

    def _with_discards(self, actions):
        """The actions, with each drop of a version as a discard unless its producer runs again next. They are read in reverse,
        to know which versions come back in this way."""
        recomputed, found = set(), []
        for before, verb, subject in reversed(actions):
            if verb == "run":
                recomputed.update(use.after for use in self.ops[subject].uses if use.after is not None)
            elif verb == "swap_in":
                recomputed.discard(subject)
            elif verb == "drop":
                verb = "drop" if subject in recomputed else "discard"
                recomputed.discard(subject)
            found.append((before, verb, subject))
        return reversed(found)

    def idle_buffers(self, index, size):
        """The buffers of this size that no op uses and that end near op `index`: gradients of the step before, until
        zero_grad() ends them."""
        return [buffer for end, buffer in self.idle
                if abs(end - index) <= 2 and self._rounded(size) == self._rounded(self.sizes[buffer])]

    def unused_buffer(self, name, size):
        """The parameter or optimizer state of this name in the trace, if no op uses it; else None."""
        buffer = self._unused.get(name)
        return buffer if buffer is not None and self._rounded(size) == self._rounded(self.sizes[buffer]) else None

    def may_use(self, index, size):
        """Whether op `index` uses a buffer of this size."""
        return any(used == self._rounded(size) for used, _ in self.ops[index].signature[1:])

    def _rounded(self, size):
        return -(-size // self.unit) * self.unit

    def signature(self, name, uses):
        """The properties of an op that must be equal in the trace and in the job. uses: (bytes, access) in order."""
        return (name, *((self._rounded(size), access) for size, access in uses))

    def _op(self, op):
        uses = tuple(
            Use(buffer, None if before < 0 else before, None if after < 0 else after, access)
            for buffer, before, after, access in op["uses"])
        signature = self.signature(op["name"], ((self.sizes[use.buffer], use.access) for use in uses))
        return ExpectedOp(op["name"], uses, signature, op.get("recipe", False), op.get("random", False))


class Matcher:
    """Position of a sequence of ops in an endlessly repeated step: after each op, the longest prefix of the step that
    the sequence ends with (Knuth, Morris and Pratt). O(1) for each op, amortised."""

    def __init__(self, signatures):
        self._signatures = signatures
        self._shorter = [0] * (len(signatures) + 1)  # longest proper prefix that the prefix of this length ends with
        length = 0
        for index in range(1, len(signatures)):
            while length > 0 and signatures[index] != signatures[length]:
                length = self._shorter[length]
            length += signatures[index] == signatures[length]
            self._shorter[index + 1] = length
        self.matched = 0

    def expected(self):
        """Index of the op that continues the step."""
        return self.matched if self.matched < len(self._signatures) else 0

    def advance(self, signature):
        """Advances by the next op. Returns whether it was the expected one."""
        length = self.expected()
        continued = self._signatures[length] == signature
        while length > 0 and self._signatures[length] != signature:
            length = self._shorter[length]
        self.matched = length + 1 if self._signatures[length] == signature else 0
        return continued
