"""Finds the models and the optimizers of an unchanged script."""

import contextlib
import functools
import gc
import os
import weakref

import torch
from torch.nn import Module
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from .errors import RecordingError


_MOST_STEPS = 4  # as of the critic of a GAN between two steps of the generator


class Discovery:
    """Calls stepped(optimizer) after each step of the optimizer that ends iterations, in this process only. That is the
    optimizer whose first step comes last, because its step ends a round of all optimizers (in a GAN, the generator's). Or
    it is the last one that took its first step, if it steps again before all others have stepped. If the job drops this
    optimizer, or goes on with one that began later (_MOST_STEPS of its steps follow each other), this one ends iterations. If
    a gradient's hook calls an optimizer within a backward pass, that step is a part of the pass and does not count. If the owner
    of an optimizer has it step for one group of parameters after the other, the last of these steps is the one that counts.

    stepped(None) is called after each backward pass of a job that has no optimizer, or whose optimizers all step within
    backward passes.

    An error does not reach the job, not even an error of stepped(): failed(error) is called.

    goes_on  whether the step that stepped() tells of continues that of the call before, so that no iteration is between them
    """

    def __init__(self, stepped, failed):
        self._stepped_hook, self._failed_hook = stepped, failed
        self._pid = os.getpid()
        self._optimizer = _nothing  # weak reference to the optimizer whose steps end iterations, or may do so
        self._ends = False  # whether a step of that optimizer has ended an iteration
        self._stepped_in_backward = {}  # as _have_stepped, of steps within backward passes
        self._awaited = _nothing  # weak reference to an optimizer that has not stepped; no backward pass ends an iteration
        self._by_backward = False  # whether a backward pass has ended an iteration
        self._row = _nothing, 0  # weak reference to the optimizer of the last step, and the number of its steps in a row
        self._have_stepped = {}  # id of an optimizer that has stepped (it may have no hash) -> weak reference to it
        self._parts, self.goes_on = None, False
        self._stopped = self._told_fork = False
        # torch.compile would compile a bare hook. (It is imported with the first optimizer, not earlier.)
        register_optimizer_step_post_hook(torch._disable_dynamo(lambda *given: self._stepped(*given)))
        _after_backward(self._passed)

    def stop(self):
        """Ends all calls. The hook stays: PyTorch may be in its loop over hooks, and raises if a hook is removed then."""
        self._stopped = True

    def in_process(self):
        """Whether this is the process that made this object, and not a process that it forked."""
        return os.getpid() == self._pid

    def optimizers(self):
        """The optimizers that have stepped: first the one whose steps end iterations, then the others in the order of their
        first steps. If all step within backward passes, these."""
        stepped = self._have_stepped or self._stepped_in_backward
        living = [optimizer for reference in stepped.values() if (optimizer := reference()) is not None]
        return sorted(living, key=lambda optimizer: optimizer is not self._optimizer())

    def _stepped(self, optimizer, _args, _kwargs):
        with self._guarded():
            if not self.in_process():
                self._stepped_in_fork()
            elif _in_backward():
                self._stepped_in_backward.setdefault(id(optimizer), weakref.ref(optimizer))
            elif not self._stopped and self._ends_iteration(optimizer):
                self._stepped_hook(optimizer)

    def _passed(self):
        with self._guarded():
            if self._stopped or self._have_stepped or _in_backward() or not self.in_process():
                return
            if self._by_backward or self._stepped_in_backward or self._has_no_optimizer():
                self._by_backward = True
                self._stepped_hook(None)

    @contextlib.contextmanager
    def _guarded(self):
        try:
            with torch._C.DisableTorchFunction():  # modes and classes of the job see no call of the recorder
                yield
        except Exception as error:
            self._stopped = True
            self._failed_hook(error)

    def _has_no_optimizer(self):
        if self._awaited() is None:
            found = next((each for each in living_optimizers() if _is_of_others(each, set())), None)
            self._awaited = _nothing if found is None else weakref.ref(found)
        return self._awaited() is None

    def _stepped_in_fork(self):
        """Says once that a process which the job forked trains, if the job itself did not before. It is not recorded."""
        if not self._have_stepped and not self._told_fork:
            self._told_fork = True
            self._failed_hook(RecordingError("the job trains in a process that it forked after it had imported torch; expected "
                                             "the import behind the fork, or the start method spawn"))

    def _ends_iteration(self, optimizer):
        is_first_step = self._has_not_stepped(optimizer)
        if is_first_step:
            self._have_stepped.pop(id(optimizer), None)  # of an optimizer that has ended: the order is that of first steps
        self._have_stepped[id(optimizer)] = weakref.ref(optimizer)
        self._ends = self._ends and self._optimizer() is not None
        if not self._ends and (is_first_step or self._optimizer() is None):
            self._optimizer = weakref.ref(optimizer)
            if self._others_will_step(optimizer):
                return False
        last, steps = self._row
        self._row = weakref.ref(optimizer), steps + 1 if last() is optimizer else 1
        if optimizer is not self._optimizer():
            if self._row[1] < _MOST_STEPS or not self._began_later(optimizer):
                return False
            self._optimizer = weakref.ref(optimizer)
        self._ends = True
        if self._parts is None or self._parts.optimizer() is not optimizer:
            self._parts = _Parts(optimizer)
        ends, self.goes_on = self._parts.stepped()
        return ends

    def _began_later(self, optimizer):
        """Whether the first step of this optimizer came after that of the one whose steps end iterations."""
        order = list(self._have_stepped)
        return self._ends and order.index(id(optimizer)) > order.index(id(self._optimizer()))

    def _others_will_step(self, optimizer):
        """Whether an optimizer has not stepped yet and shares no parameter with an optimizer that has. (An optimizer that
        shares one is a wrapper.)"""
        known = _parameters(optimizer).union(*(_parameters(each) for each in self.optimizers()))
        others = [each for each in living_optimizers()
                  if self._has_not_stepped(each) and self._stepped_in_backward.get(id(each), _nothing)() is not each]
        return any(_is_of_others(other, known) for other in others)

    def _has_not_stepped(self, optimizer):
        return self._have_stepped.get(id(optimizer), _nothing)() is not optimizer  # a dead one may have had the id


class _Parts:
    """Steps of one optimizer that are one step of what owns it, as DeepSpeed has an optimizer step for one group of parameters
    after the other. Their first parameters differ, and autograd records nothing between them."""

    def __init__(self, optimizer):
        self.optimizer = weakref.ref(optimizer)
        self._recorded, self._parts = None, set()  # of the running step: what autograd has recorded before, the first parameters
        self._count = 1  # of the parts of a step

    def stepped(self):
        """Whether the step is complete; and whether it was thought to be so before."""
        groups = getattr(self.optimizer(), "param_groups", ())
        part = next((id(each) for group in groups for each in group["params"]), None)
        recorded = torch.autograd._get_sequence_nr()
        if recorded == self._recorded and part not in self._parts:
            self._parts.add(part)
            goes_on = len(self._parts) > self._count
            self._count = max(self._count, len(self._parts))
        else:
            goes_on = False
            self._count = min(self._count, len(self._parts) or 1)
            self._recorded, self._parts = recorded, {part}
        return len(self._parts) == self._count, goes_on


def _nothing():
    """A reference to nothing."""


_watched = None  # PyTorch's function, while another one stands in its place
_passed = []  # what that one calls after each backward pass that the job asks for


def _after_backward(passed):
    global _watched
    _passed.append(passed)
    if _watched is not None:
        return
    _watched = backward = torch.autograd.backward

    @functools.wraps(backward)
    def watched(*args, **kwargs):
        backward(*args, **kwargs)
        for each in _passed:
            each()

    torch.autograd.backward = watched


def leave_backward():
    """From now on, no backward pass ends an iteration. Call it before the job compiles anything: torch.compile would compile
    what is called after a pass."""
    global _watched
    if _watched is not None and getattr(torch.autograd.backward, "__wrapped__", None) is _watched:
        torch.autograd.backward = _watched
    _watched = None
    _passed.clear()


def living_optimizers():
    return [each for each in gc.get_objects() if issubclass(type(each), Optimizer)]


def _in_backward():
    return torch._C._current_graph_task_id() != -1


def _is_of_others(optimizer, stepped):
    try:
        parameters = _parameters(optimizer)
        return bool(parameters) and not stepped & parameters
    except Exception:  # it refuses to be looked at: it is not waited for
        return False


def _parameters(optimizer):
    return {id(parameter) for group in getattr(optimizer, "param_groups", ()) for parameter in group["params"]}


def _of_compiler(module):
    """Whether torch.compile made a module: it holds what its graph uses, such as an optimizer's state."""
    return isinstance(module, torch.fx.GraphModule) and any(str(key).startswith("dynamo") for key in module.meta)


def outermost_modules(optimizers=()):
    """The modules that are not inside another module; first those with parameters of optimizers, in the optimizers' order. (The
    garbage collector, which knows the modules, reorders them.) Hooks on module calls would find them too, but torch.compile would
    compile such hooks."""
    modules = [each for each in gc.get_objects() if issubclass(type(each), Module)]
    inner = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
    trained = [_parameters(optimizer) for optimizer in optimizers]
    outer = [module for module in modules if id(module) not in inner and not _of_compiler(module)]
    return sorted(outer, key=lambda module: _first_with({id(each) for each in module.parameters()}, trained))


def _first_with(some, sets):
    return next((at for at, each in enumerate(sets) if some & each), len(sets))
