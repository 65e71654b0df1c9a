"""Reads and writes of an op, from its schema, with corrections for schemas that say too much or too little."""

import torch

# The tensor argument only gives shape, type and device; its content is not read.
SHAPE_ONLY = frozenset(
    "empty_like zeros_like ones_like full_like rand_like randn_like randint_like "
    "new_empty new_empty_strided new_zeros new_ones new_full".split()
)

# In-place ops whose result does not depend on the old content of the tensor.
OVERWRITING = frozenset(
    "copy_ fill_ zero_ normal_ uniform_ bernoulli_ random_ exponential_ log_normal_ geometric_ cauchy_ "
    "_foreach_zero_ _foreach_copy_".split()
)

# Ops that make a storage without content: an allocation and no kernel.
UNINITIALISED = frozenset("empty empty_strided empty_like new_empty new_empty_strided empty_permuted".split())

# Ops that only make a tensor refer to other memory, or to the same memory in another shape, although their schema does
# not say so.
REBINDING = frozenset(["set_", "_unsafe_view"])


class TensorArgument:
    """An argument that may be a tensor or a list of tensors. `access` is None if its content does not matter, and
    "depends" if the access depends on the call."""

    __slots__ = ("position", "name", "access", "is_out", "written")

    def __init__(self, position, argument, short_name, inplace_view):
        self.position, self.name, self.is_out = position, argument.name, argument.is_out
        self.written = argument.alias_info is not None and argument.alias_info.is_write
        if self.name in ("running_mean", "running_var"):
            self.access = "depends"
        elif short_name in SHAPE_ONLY or inplace_view:
            self.access = None
        else:
            self.access = "depends" if self.written else "read"


class Signature:
    """Facts from the schema of an op, which hold for all its calls. Read once for each op.

    arguments   those of the schema
    tensors     the TensorArguments among them
    records     whether the op belongs to a program; ops of PyTorch's own tools do not
    views       whether the op makes no memory and changes none: a view of its argument, or another shape of the same tensor
    random      whether the op draws random numbers if its arguments do not switch that off
    reads_value  whether the op gives the value of its argument to the host
    """

    def __init__(self, func):
        schema = func._schema
        self.name = schema.name  # "aten::mm"
        self.short_name = self.name.split("::")[-1]  # "mm"
        self.records = func.namespace not in ("prim", "profiler")
        self.arguments = schema.arguments
        self.positions = {argument.name: position for position, argument in enumerate(self.arguments)}
        inplace_view = torch.Tag.inplace_view in func.tags
        self.tensors = [TensorArgument(position, argument, self.short_name, inplace_view)
                        for position, argument in enumerate(self.arguments) if "Tensor" in str(argument.type)]
        results = schema.returns
        aliases = bool(results) and all(each.alias_info is not None and not each.alias_info.is_write for each in results)
        self.views = (self.short_name in REBINDING or aliases or (inplace_view and self.short_name != "resize_"))
        self.reads_value = self.short_name == "_local_scalar_dense"
        self.has_statistics = "running_mean" in self.positions
        self.random = torch.Tag.nondeterministic_seeded in func.tags and not self.short_name.endswith("_backward")


_signatures = {}  # op -> Signature


def signature_of(func):
    signature = _signatures.get(func)
    if signature is None:
        signature = _signatures[func] = Signature(func)
    return signature


def _tensors_in(value):
    """The tensors of an argument or a result: the tensor itself, or the tensors of a list, at any depth."""
    if isinstance(value, torch.Tensor):
        return [value]
    if not isinstance(value, (list, tuple)):
        return []
    found = []
    for each in value:
        if isinstance(each, torch.Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += _tensors_in(each)
    return found


class OpCall:
    """One call of an aten op.

    result   the value that it returned; valid after run()
    outputs  the tensors in the result, with lists unrolled
    """

    __slots__ = ("func", "args", "kwargs", "signature", "name", "short_name", "result", "_tensors", "_outputs")

    def __init__(self, func, args, kwargs, signature=None):
        self.func, self.args, self.kwargs = func, args, kwargs
        self.signature = signature or signature_of(func)
        self.name, self.short_name = self.signature.name, self.signature.short_name
        self._tensors = self._outputs = None

    def run(self):
        """Calls the op and returns its result."""
        self.result = self.func(*self.args, **self.kwargs)
        return self.result

    @property
    def outputs(self):
        if self._outputs is None:
            self._outputs = _tensors_in(self.result)
        return self._outputs

    def value(self, name, default=None):
        """The value of an argument, `default` if the op has no such argument."""
        position = self.signature.positions.get(name)
        return default if position is None else self._at(position)

    def has(self, name):
        return name in self.signature.positions

    def _at(self, position):
        argument = self.signature.arguments[position]
        if position < len(self.args) and not argument.kwarg_only:
            return self.args[position]
        if argument.name in self.kwargs:
            return self.kwargs[argument.name]
        return argument.default_value if argument.has_default_value() else None

    def tensors(self):
        """(argument, tensor) for every tensor argument, lists of tensors unrolled, in schema order."""
        if self._tensors is None:
            found = self._tensors = []
            given = len(self.args)
            for argument in self.signature.tensors:
                value = self.args[argument.position] if argument.position < given else self._at(argument.position)
                if isinstance(value, torch.Tensor):
                    found.append((argument, value))
                elif isinstance(value, (list, tuple)):
                    found += [(argument, tensor) for tensor in _tensors_in(value)]
        return self._tensors

    def is_random(self):
        """Whether the call draws random numbers: the op's tag says so, and the arguments do not switch that off.
        Backward ops with this tag do not: they use the mask or the seed that forward kept."""
        if not self.signature.random:
            return False
        return self.value("dropout_p", 1) != 0 and self.value("train", True) is not False

    def updates_running_statistics(self):
        """Whether the call is a normalisation in training mode. Such a call also changes running_mean and running_var;
        its result does not depend on them."""
        return self._ignores_running_statistics() and "backward" not in self.short_name

    def _ignores_running_statistics(self):
        if not self.signature.has_statistics:
            return False
        if "backward" in self.short_name:
            return self.value("train", self.value("update", True)) is True
        return "with_update" in self.short_name or self.value("training", self.value("use_input_stats", False)) is True

    def access(self, argument, tensor):
        """The access to a tensor argument: "read", "write", "read_write", or None if its content does not matter.

        A write is a read_write if it does not cover the storage, or depends on the old content."""
        if argument.access != "depends":
            return argument.access
        if argument.name in ("running_mean", "running_var") and self._ignores_running_statistics():
            return None
        if not argument.written:
            return "read"
        if self.short_name.startswith("_fused_") and argument.name == "grads" and self.value("grad_scale") is None:
            return "read"  # only unscaling changes the gradients
        overwrites = argument.is_out or self.short_name in OVERWRITING
        return "write" if overwrites and covers_storage(tensor) else "read_write"


def covers_storage(tensor):
    """Whether writing the tensor writes every byte of its storage."""
    return distinct_bytes(tensor) == tensor.untyped_storage().nbytes()


def distinct_bytes(tensor):
    """Bytes of the elements of a tensor, with an expanded dimension counted once. Never more than its storage has."""
    count = tensor.element_size()
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= size if stride != 0 or size == 0 else 1
    return min(count, tensor.untyped_storage().nbytes())
