"""Helpers of the tests: they import torch or skip the tests, and query a recorded program."""

import gc
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

try:
    import torch
except ImportError:
    if "TIDEPOOL_REQUIRE_TORCH" in os.environ:
        raise
    raise unittest.SkipTest("PyTorch is not installed; the recorder's tests need it") from None

import tidepool_torch


def record(make, warmup=1, **options):
    """Records a step with fake tensors. make() gives (model, optimizer or None, step). Returns the program."""
    with tidepool_torch.fake_tensors():
        model, optimizer, step = make()
        optimizers = [] if optimizer is None else [optimizer]
        return tidepool_torch.record_steps(step, model, optimizers, warmup=warmup, **options).program


def hide_optimizers(test):
    """For the time of a test, the optimizers that other tests have made are not found."""
    objects = gc.get_objects
    others = {id(each): each for each in objects() if issubclass(type(each), torch.optim.Optimizer)}
    patch = mock.patch("gc.get_objects", lambda: [each for each in objects() if id(each) not in others])
    patch.start()
    test.addCleanup(patch.stop)


def short(name):
    return name.removeprefix("aten::")


def ops(program, phase=None):
    """Names of the ops, of one phase or of all."""
    return [short(op.name) for op in program.ops() if phase in (None, op.phase)]


def the_op(program, name):
    """The only op with this name."""
    found = [op for op in program.ops() if short(op.name) == name]
    assert len(found) == 1, f"{len(found)} ops are named {name}: {ops(program)}"
    return found[0]


def accesses(op):
    return [access for _, access in op.uses]


def impossible_steps(program):
    """Impossible events: uses and frees of buffers that do not exist, and reads of content that no op wrote."""
    live, written, wrong = set(program.existing), set(program.existing), []
    for what, subject in program.steps:
        if what == "alloc":
            live.add(subject)
        elif what == "free":
            if subject not in live:
                wrong.append(f"free of {subject}")
            live.discard(subject)
        elif what == "run":
            for buffer, access in subject.uses:
                if buffer not in live:
                    wrong.append(f"{subject.name} uses {buffer}")
                if access != "write" and buffer not in written:
                    wrong.append(f"{subject.name} reads unwritten {buffer}")
            written.update(buffer for buffer, access in subject.uses if access != "read")
    return wrong
