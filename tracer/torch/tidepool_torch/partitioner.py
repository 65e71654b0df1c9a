"""A plan of Tidepool in the place of torch.compile's own choice of what forward saves for backward.

    tidepool run --plan step.plan --trace step.tide --program-out step.json
    torch._inductor.config.custom_partitioner_fn = tidepool_torch.partitioner.partitioner("step.json")      # PyTorch 2.9 or later

The trace is one of the compiled job (`record --torch`): nodes are known by their names in the same graphs. What the plan has on the
device when forward ends is saved; all else that backward needs is made again."""

import hashlib
import json
import operator

import torch
from torch._functorch import config
from torch._functorch.compile_utils import fx_graph_cse
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy

from . import graphs

try:
    from torch._inductor.custom_graph_pass import CustomPartitionerFn as _Base
except ImportError:  # before 2.9
    _Base = object


def partitioner(path):
    """The plan in a file of `tidepool run --program-out`, for torch._inductor.config.custom_partitioner_fn."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    content = json.loads(text)
    if content.get("tidepool_graphs") != 1:
        raise ValueError(f"{path}: no plan of a compiled step; expected one that `tidepool run --program-out` wrote for a trace whose ops "
                         "are those of graphs")
    return Partitioner(content["saved"], hashlib.sha256(text.encode()).hexdigest())


class Partitioner(_Base):
    """saved: name of what a node makes, as in graph0.addmm_1 or graph0.var_mean[0] -> bytes"""

    def __init__(self, saved, identity):
        self._saved, self._identity = saved, identity

    def __call__(self, joint, inputs, **options):
        graphs.number(joint.graph)
        joint.graph.eliminate_dead_code()
        if config.cse:  # as the compiler does later: nodes that compute the same become the first of them, with its tag
            joint.graph = fx_graph_cse(joint.graph)
        self._tag(joint.graph, options["num_fwd_outputs"])
        with config.patch(activation_memory_budget=1.0):
            return min_cut_rematerialization_partition(joint, inputs, **options)

    def uuid(self):
        return self._identity

    def saves(self, node):
        """Whether the plan keeps what the node makes."""
        if node.target is operator.getitem:
            return f"{graphs.name_of(node.args[0])}[{node.args[1]}]" in self._saved
        return graphs.name_of(node) in self._saved

    def _tag(self, graph, forward_outputs):
        """Saves the nodes of the plan; what backward needs of others is made again."""
        outputs = next(node for node in graph.nodes if node.op == "output").args[0]
        in_backward = set()
        for node in graph.nodes:
            if node.op == "placeholder" and "tangents" in str(node.target) or in_backward.intersection(node.all_input_nodes):
                in_backward.add(node)
        found, waiting = set(), [each for each in outputs[forward_outputs:] if isinstance(each, torch.fx.Node)]
        for node in graph.nodes:
            if node.op == "call_function" and node not in in_backward:
                node.meta["ac_graph_id"] = 0
        while waiting:
            node = waiting.pop()
            if node in found or node.op != "call_function":
                continue
            found.add(node)
            if node not in in_backward:
                saved = self.saves(node)
                kept = saved or "inductor_seeds" in node.name  # draws numbers
                node.meta["recompute"] = CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE
                if kept:
                    if node.target is operator.getitem:
                        node.args[0].meta["recompute"] = CheckpointPolicy.MUST_SAVE
                    continue
            waiting += node.all_input_nodes
