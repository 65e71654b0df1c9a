"""What an op reads and writes, from its schema; and the few places where schemas say too much or too little."""

import torch
from torch.utils._pytree import tree_leaves

# The tensor argument only gives shape, type and device; its content is not read.
SHAPE_ONLY = frozenset(
    "empty_like zeros_like ones_like full_like rand_like randn_like randint_like "
    "new_empty new_empty_strided new_zeros new_ones new_full".split()
)

# In-place ops whose result does not depend on what the tensor held before.
OVERWRITING = frozenset(
    "copy_ fill_ zero_ normal_ uniform_ bernoulli_ random_ exponential_ log_normal_ geometric_ cauchy_ "
    "_foreach_zero_ _foreach_copy_".split()
)

# Ops that make a storage without putting anything into it: an allocation and no kernel.
UNINITIALISED = frozenset("empty empty_strided empty_like new_empty new_empty_strided empty_permuted".split())


class OpCall:
    """One call of an aten op.

    arguments  list of (schema argument, value), defaults filled in, in schema order
    result     what it returned, and outputs the tensors in it, lists unrolled; once run() was called
    """

    def __init__(self, func, args, kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs
        self.name = func._schema.name  # "aten::mm"
        self.short_name = self.name.split("::")[-1]  # "mm"
        self.arguments = []
        for position, argument in enumerate(func._schema.arguments):
            if position < len(args) and not argument.kwarg_only:
                value = args[position]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            else:
                value = argument.default_value if argument.has_default_value() else None
            self.arguments.append((argument, value))

    def run(self):
        """Calls the op and gives back its result."""
        self.result = self.func(*self.args, **self.kwargs)
        self.outputs = [leaf for leaf in tree_leaves(self.result) if isinstance(leaf, torch.Tensor)]
        return self.result

    def value(self, name, default=None):
        """The value of an argument, `default` if the op has no such argument."""
        for argument, value in self.arguments:
            if argument.name == name:
                return value
        return default

    def has(self, name):
        return any(argument.name == name for argument, _ in self.arguments)

    def tensors(self):
        """(argument, tensor) for every tensor argument, lists of tensors unrolled, in schema order."""
        for argument, value in self.arguments:
            if isinstance(value, torch.Tensor):
                yield argument, value
            elif isinstance(value, (list, tuple)):
                for leaf in tree_leaves(value):
                    if isinstance(leaf, torch.Tensor):
                        yield argument, leaf

    def is_random(self):
        """Draws random numbers: tagged so, and not switched off by its arguments. Backward ops of that tag work with
        the mask or the seed that forward kept."""
        if torch.Tag.nondeterministic_seeded not in self.func.tags or self.short_name.endswith("_backward"):
            return False
        return self.value("dropout_p", 1) != 0 and self.value("train", True) is not False

    def updates_running_statistics(self):
        """A normalisation in training mode: it also changes running_mean and running_var, which its result ignores."""
        return self._ignores_running_statistics() and "backward" not in self.short_name

    def _ignores_running_statistics(self):
        if not self.has("running_mean"):
            return False
        if "backward" in self.short_name:
            return self.value("train", self.value("update", True)) is True
        return "with_update" in self.short_name or self.value("training", self.value("use_input_stats", False)) is True

    def access(self, argument, tensor):
        """"read", "write", "read_write", or None where the content of a tensor argument does not matter.

        A write that does not cover the storage, or that depends on what was there, is a read_write."""
        if argument.name in ("running_mean", "running_var") and self._ignores_running_statistics():
            return None
        if self.short_name in SHAPE_ONLY or torch.Tag.inplace_view in self.func.tags:
            return None
        if argument.alias_info is None or not argument.alias_info.is_write:
            return "read"
        if self.short_name.startswith("_fused_") and argument.name == "grads" and self.value("grad_scale") is None:
            return "read"  # only unscaling changes the gradients
        overwrites = argument.is_out or self.short_name in OVERWRITING
        return "write" if overwrites and covers_storage(tensor) else "read_write"


def covers_storage(tensor):
    """Whether writing the tensor writes every byte of its storage."""
    return distinct_bytes(tensor) == tensor.untyped_storage().nbytes()


def distinct_bytes(tensor):
    """Bytes of the elements that the tensor names, an expanded dimension counted once. Never more than its storage."""
    count = tensor.element_size()
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= size if stride != 0 or size == 0 else 1
    return min(count, tensor.untyped_storage().nbytes())
