"""The position of an op in the program: its module, its phase (forward, backward or optimizer), and the user's line."""

import bisect
import itertools
import threading
import weakref

import torch
from torch.nn.modules import module as module_hooks
from torch.optim.optimizer import register_optimizer_step_pre_hook

from .user_line import UserLine


NOWHERE = "", ""  # the (module, line) of an op that has none


def containers_of(models):
    """Dotted paths of modules that only contain others and are never called, such as a ModuleList, in order."""
    paths = {path for model, prefix in zip(models, prefixes_of(models)) for path, module in model.named_modules(prefix=prefix)
             if path and getattr(module.forward, "__func__", None) is torch.nn.Module.forward}
    return sorted(paths)


def names_of(models):
    """The name of each model: its class, as in Generator.main.0, with a number, as in Generator2, if an earlier model or a
    module of the first model already has that path. So no two modules inside models, and no two parameters or buffers,
    have the same path. Further models without parameters and buffers, such as losses, have an empty name if no earlier
    model has a module with one of their paths."""
    names, taken = [], set()
    for model in models:
        paths = {path for path, _ in model.named_modules() if path}
        name = ""
        if not names or _has_tensors(model) or not taken.isdisjoint(paths):
            kind = type(model).__name__
            numbered = itertools.chain([kind], (f"{kind}{number}" for number in itertools.count(2)))
            name = next(each for each in numbered if each not in taken)
            taken.add(name)
            if names:
                paths = {f"{name}.{path}" for path in paths}
        names.append(name)
        taken |= paths
    return names


def prefixes_of(models):
    """The prefix of each model's paths: empty for the first model, the name for the others."""
    return ["", *names_of(models)[1:]]


def _has_tensors(model):
    return next(itertools.chain(model.parameters(), model.buffers()), None) is not None


class _Paths:
    """Dotted paths of objects that may have no hash and may end: then another object may get their id."""

    def __init__(self):
        self._known = {}  # id -> (weak reference, path)

    def add(self, each, path):
        self._known.setdefault(id(each), (weakref.ref(each), path))

    def known(self):
        """(weak reference, path) of all of them."""
        return self._known.values()

    def of(self, each, otherwise):
        reference, path = self._known.get(id(each), (None, ""))
        return path if reference is not None and reference() is each else otherwise


class Position:
    """Follows module calls, autograd and the optimizer while entered.

    Forward ops belong to the innermost running module, and to the line of the user's code that runs. A backward op
    belongs to the module and the line whose forward op made its autograd node: forward numbers the nodes in order, and
    backward reads the number. Nodes that the last two iterations neither made nor read are forgotten, so that a long recording
    takes no more memory than a short one; an op of a forgotten node has no module. A module that runs inside backward is
    a checkpointed forward that runs again. Ops after a backward pass count as optimizer work (clipping, updates, clearing
    gradients), up to the next module call or the next op that autograd records, as of a penalty on gradients.
    """

    def __init__(self, models):
        self._names = _Paths()  # of modules
        self._owners = _Paths()  # of the modules that hold parameters
        for model, prefix in zip(models, prefixes_of(models)):
            for path, module in model.named_modules(prefix=prefix):
                self._names.add(module, path)
            for path, parameter in model.named_parameters(prefix):
                self._owners.add(parameter, path.rpartition(".")[0])
        self._running = []  # paths of the modules that are running, innermost last
        self._first_node = []  # ascending node numbers; entry i begins a range of nodes
        self._node_place = []  # entry i: the (module, line) of that range
        self._last_node = -1
        self._last_place = None  # of the last node, if this iteration made it
        self._thread = threading.get_ident()  # nodes are numbered by thread
        self._nodes_before = 0  # number of the first node of the previous iteration
        self._nodes_now = 0  # number of the first node of this iteration
        self._read_before, self._read_now = set(), set()  # entries of _first_node that backward read in these iterations
        self._in_optimizer = False
        self.trains = False  # whether autograd has recorded an op of this iteration
        self._user_line = UserLine()
        self._hooks = []

    def __enter__(self):
        self._last_node = self._newest_node()
        update = torch._disable_dynamo(lambda *_: self._begin_update())  # torch.compile would compile a bare hook
        self._hooks = [*self._module_hooks(), register_optimizer_step_pre_hook(update)]
        return self

    def _module_hooks(self):
        return [module_hooks.register_module_forward_pre_hook(self._enter_module),
                module_hooks.register_module_forward_hook(self._leave_module, always_call=True)]

    def __exit__(self, *_):
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @property
    def in_call(self):
        """Whether a module runs."""
        return bool(self._running)

    def start_iteration(self):
        self._in_optimizer = False
        self.trains = False
        self._forget_nodes()
        self._nodes_before, self._nodes_now = self._nodes_now, self._last_node + 1
        self._read_before, self._read_now = self._read_now, set()
        self._last_place = None

    def now(self):
        """(module, phase, line) of the op that is being dispatched."""
        if not self._in_backward():
            module, line = self._running[-1] if self._running else "", self._line()
            if self._note_node(module, line):
                self._in_optimizer = False
                self.trains = True
            return module, "optimizer" if self._in_optimizer else "forward", line
        self._in_optimizer = True
        if self._running:
            module, line = self._running[-1], self._line()
            self._note_node(module, line)
            return module, "forward", line
        if self._on_own_thread():
            self._last_node = max(self._last_node, self._newest_node())  # with create_graph, backward ops make nodes
        module, line = self._place_of(*self._current_node())
        return module, "backward", line

    # What PyTorch tells of the op that is being dispatched. The replay of a log reads it there.

    def _in_backward(self):
        return torch._C._current_graph_task_id() != -1

    def _on_own_thread(self):
        return threading.get_ident() == self._thread

    def _newest_node(self):
        """The number of this thread's newest node. While an op is dispatched, that is its own node, if it has one."""
        return torch.autograd._get_sequence_nr() - 1

    def _current_node(self):
        """The number of the node whose backward runs, None if none does; and the parameter to whose gradient the node adds,
        or None."""
        node = torch._C._current_autograd_node()
        if node is None:
            return None, None
        variable = getattr(node, "variable", None)  # only nodes that add to a parameter's gradient have one
        return node._sequence_nr(), variable

    def _owner_of(self, parameter):
        return self._owners.of(parameter, "")

    def _line(self):
        return self._user_line.now()

    # Hooks of the optimizers and modules.

    def _begin_update(self):
        self._in_optimizer = True

    def _enter_module(self, module, _inputs):
        self._enter(self._names.of(module, type(module).__name__), self._in_backward())

    def _leave_module(self, _module, _inputs, _outputs):
        self._leave()

    def _enter(self, path, in_backward):
        self._running.append(path)
        if not in_backward:
            self._in_optimizer = False

    def _leave(self):
        if self._running:  # the module may have begun before the hooks were there
            self._running.pop()

    def _note_node(self, module, line):
        """Returns whether the op has a node of its own."""
        node = self._newest_node()
        if node <= self._last_node:
            return False
        self._last_node = node
        if (module, line) != self._last_place:
            self._last_place = module, line
            self._first_node.append(node)
            self._node_place.append(self._last_place)
        return True

    def _forget_nodes(self):
        """Forgets the places of nodes that neither the iteration that ends nor the one before made or read."""
        read, entries = self._read_before | self._read_now, list(zip(self._first_node, self._node_place))
        self._first_node, self._node_place = [], []
        for node, place in entries:
            if node < self._nodes_before and node not in read:
                place = NOWHERE
            if place != NOWHERE or self._node_place[-1:] != [NOWHERE]:
                self._first_node.append(node)
                self._node_place.append(place)

    def _place_of(self, node, variable):
        """(module, line) of a node of autograd, as _current_node() gives it."""
        if variable is not None:
            return self._owner_of(variable), ""
        if node is None:
            return NOWHERE
        index = bisect.bisect_right(self._first_node, node) - 1
        if index < 0:
            return NOWHERE
        self._read_now.add(self._first_node[index])
        return self._node_place[index]
