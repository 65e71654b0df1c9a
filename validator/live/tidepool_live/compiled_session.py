"""A plan that torch.compile carries out: the compiler saves for backward what the plan keeps."""

import functools

import torch
from tidepool_torch import graphs
from tidepool_torch.after_import import after_import


class CompiledSession:
    """Divides the job's graphs as the plan says, and counts the bytes that forward really saves.

    partition   the Partitioner of the plan
    """

    def __init__(self, partition):
        self._partition = partition
        self._held, self._copies = {}, {}  # number of a graph -> bytes that it made; of copies of its inputs in another layout
        after_import(["torch._inductor.compile_fx"], lambda _name, module: self._change(module))

    def _change(self, module):
        graphs.replace_function(module, "compile_fx", self._compile_fx(module))
        graphs.replace_function(module, "min_cut_rematerialization_partition", self._divide)

    def _compile_fx(self, module):
        def compile_fx(compile_fx, *args, **kwargs):
            args, kwargs = graphs.with_compiler(compile_fx, args, kwargs, module.compile_fx_inner, self._compile)
            with torch._functorch.config.patch(enable_autograd_cache=False):  # kept code saves what another plan saves
                return compile_fx(*args, **kwargs)

        return compile_fx

    def _divide(self, _inductors, joint, inputs, **options):
        forward, backward = self._partition(joint, inputs, **options)
        forward.meta["tidepool_outputs"] = options["num_fwd_outputs"]
        return forward, backward

    def _compile(self, compile, graph, inputs, **options):
        outputs = graph.meta.get("tidepool_outputs")
        nodes = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        makes = [isinstance(node, torch.fx.Node) and node.op != "placeholder" for node in nodes]
        compiled = compile(graph, inputs, **options)
        if outputs is None or options.get("is_backward") or options.get("is_inference"):
            return compiled
        # What the job gets counts as well where the plan keeps it.
        kept = [at >= outputs or makes[at] and self._partition.saves(nodes[at]) for at in range(len(nodes))]
        number = len(self._held)
        self._held[number] = self._copies[number] = 0

        def run(arguments):
            given = {each.untyped_storage()._cdata for each in arguments if isinstance(each, torch.Tensor)}
            results = compiled(arguments)
            saved = [{each.untyped_storage()._cdata: each.untyped_storage().nbytes()
                      for each, made, counts in zip(results, makes, kept)
                      if counts and isinstance(each, torch.Tensor) and made is which}
                     for which in (True, False)]
            self._held[number], self._copies[number] = (
                sum(size for storage, size in each.items() if storage not in given) for each in saved)
            return results

        run._boxed_call = True
        return run

    def report(self):
        if not self._held:
            return {}
        return {"tidepool_live_report": 1, "held_bytes": sum(self._held.values()), "held_copies_bytes": sum(self._copies.values())}
