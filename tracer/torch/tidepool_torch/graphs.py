"""The graphs of a job that torch.compile compiles for the CPU. While it is recorded, they run operator by operator, as the compiler
has divided them into forward and backward, and each node is known by a name that a later run of the job finds again."""

import functools
import inspect
import threading

import torch

from .after_import import after_import

_GRAPH = "tidepool_graph"  # in a node's meta: the number of its graph among those that are trained
_running = threading.local()
_count = 0
watcher = None  # what is called with each node of a numbered graph that has run, its arguments and its results


def running():
    """The node that runs on this thread, or None."""
    return getattr(_running, "node", None)


def number(graph):
    """Numbers a graph of forward and backward, before it is divided. Returns its number."""
    global _count
    for node in graph.nodes:
        node.meta[_GRAPH] = _count
    _count += 1
    return _count - 1


def name_of(node):
    """The name of what a node makes, as in graph0.addmm_1; "" if its graph has no number."""
    return f"graph{node.meta[_GRAPH]}.{node.name}" if _GRAPH in node.meta else ""


def replace_function(module, name, function):
    """Sets a function of a module. The one that was there is its first argument."""
    setattr(module, name, functools.wraps(vars(module)[name])(functools.partial(function, vars(module)[name])))


def with_compiler(compile_fx, args, kwargs, before, compile):
    """The arguments of a call of compile_fx, with compile(before, ...) in the place of Inductor's own compiler of one graph."""
    given = inspect.signature(compile_fx).bind(*args, **kwargs)
    given.apply_defaults()
    if given.arguments["inner_compile"] is before:
        given.arguments["inner_compile"] = functools.partial(compile, before)
    return given.args, given.kwargs


def run_by_operator():
    """From now on, what Inductor would compile for the CPU runs operator by operator. Called before the job compiles anything."""
    after_import(["torch._inductor.compile_fx"], lambda _name, module: _change(module))


def _change(module):
    def compile_fx(compile_fx, *args, **kwargs):
        args, kwargs = with_compiler(compile_fx, args, kwargs, module.compile_fx_inner, _compile)
        with torch._functorch.config.patch(enable_autograd_cache=False):  # kept code is of another way to run
            return compile_fx(*args, **kwargs)

    def partition(partition, graph, *args, **kwargs):
        number(graph.graph)
        return partition(graph, *args, **kwargs)

    replace_function(module, "compile_fx", compile_fx)
    replace_function(module, "min_cut_rematerialization_partition", partition)


def _compile(compile, graph, inputs, **options):
    if any(device.type != "cpu" for device in _devices(graph)):
        return compile(graph, inputs, **options)

    def run(arguments):
        return _Nodes(graph).boxed_run(arguments)  # a new one, since it keeps the outputs

    run._boxed_call = True  # its caller hands the arguments over, so that each ends behind its last use
    return run


def _devices(graph):
    for node in graph.graph.nodes:
        values = node.meta.get("val")
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(value, torch.Tensor):
                yield value.device


class _Nodes(torch.fx.Interpreter):
    """Tells the watcher of each node."""

    def run_node(self, node):
        before, _running.node = running(), node
        try:
            return super().run_node(node)
        finally:
            _running.node = before

    def call_function(self, target, args, kwargs):
        result = super().call_function(target, args, kwargs)
        if watcher is not None and isinstance(running(), torch.fx.Node):
            watcher(running(), (args, kwargs), result)
        return result
