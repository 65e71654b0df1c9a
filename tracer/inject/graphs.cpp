// The memory that nodes of graphs use at each launch. Parameters are read when a node is created, and when the calls
// for kernel nodes or for nodes of any type change them, so a launch of the graph takes no time here. Changes by the
// calls for copy nodes and memset nodes are not seen. Nodes of executable graphs are clones of the nodes that the
// program created.
#include "tracer/inject/callbacks.hpp"
#include "tracer/inject/recorder.hpp"

namespace tidepool::inject {

using cupti::DriverCall;

void Recorder::append_node(CUgraphNode node, const Uses& found) {
  raw::Launch launch;
  if (cupti_.graph_node_id == nullptr || cupti_.graph_node_id(node, &launch.graph_node) != CUPTI_SUCCESS) return;
  launch.start = launch.end = now();
  launch.function = found.function;
  launch.thread = thread_id();
  launch.unknown_pointers = found.unknown_pointers;
  launch.flags = found.flags;
  output_.append(launch, found.uses);
}

void Recorder::set_node(CUgraphNode node, Uses found) {
  append_node(node, found);
  const std::lock_guard lock{graphs_mutex_};
  nodes_[node].uses = std::move(found);
}

void Recorder::set_clones(CUgraphExec exec, CUgraphNode original, const Uses& found) {
  std::vector<CUgraphNode> clones;
  {
    const std::lock_guard lock{graphs_mutex_};
    if (const auto known = nodes_.find(original); known != nodes_.end())
      for (const auto& [owner, node] : known->second.clones)
        if (owner == exec) clones.push_back(node);
  }
  for (CUgraphNode clone : clones) append_node(clone, found);
}

void Recorder::on_graph_node(CUpti_CallbackId id, const CUpti_GraphData& data) {
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
    this_thread().created_nodes.push_back(data.node);
  } else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING) {
    const std::lock_guard lock{graphs_mutex_};
    const auto gone = nodes_.find(data.node);
    if (gone == nodes_.end()) return;
    if (const auto original = nodes_.find(gone->second.original); original != nodes_.end())
      std::erase_if(original->second.clones, [&](const auto& clone) { return clone.second == data.node; });
    nodes_.erase(gone);
  } else {
    Uses found;
    {
      const std::lock_guard lock{graphs_mutex_};
      const auto original = nodes_.find(data.originalNode);
      if (original == nodes_.end()) return;
      original->second.clones.emplace_back(data.graphExec, data.node);
      found = original->second.uses;
      Node& clone = nodes_[data.node];  // a clone may be cloned
      clone.uses = found;
      clone.original = data.originalNode;
    }
    append_node(data.node, found);
  }
}

void Recorder::scan_kernel_node(const CUDA_KERNEL_NODE_PARAMS& node, Uses& found) {
  const CUfunction function = node.func != nullptr ? node.func : reinterpret_cast<CUfunction>(node.kern);
  scan_kernel(function, node.gridDimX, node.kernelParams, node.extra, found);
}

void Recorder::collect_node(const CUgraphNodeParams& node, Uses& found) {
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    const auto& kernel = node.kernel;
    scan_kernel(kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern), kernel.gridDimX,
                kernel.kernelParams, kernel.extra, found);
  } else if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    append_copy_node(node.memcpy.copyParams, found.uses);
  } else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET) {
    const auto& memset = node.memset;
    append_memset_node({memset.dst, memset.pitch, memset.value, memset.elementSize, memset.width, memset.height},
                       found.uses);
  }
}

void Recorder::on_graph_call(DriverCall call, const void* parameters) {
  Uses found;
  switch (call) {
    case DriverCall::kAddKernelNode: {
      const auto& p = *static_cast<const cuGraphAddKernelNode_v2_params*>(parameters);
      scan_kernel_node(*p.nodeParams, found);
      return set_node(*p.phGraphNode, std::move(found));
    }
    case DriverCall::kAddCopyNode: {
      const auto& p = *static_cast<const cuGraphAddMemcpyNode_params*>(parameters);
      append_copy_node(*p.copyParams, found.uses);
      return set_node(*p.phGraphNode, std::move(found));
    }
    case DriverCall::kAddMemsetNode: {
      const auto& p = *static_cast<const cuGraphAddMemsetNode_params*>(parameters);
      append_memset_node(*p.memsetParams, found.uses);
      return set_node(*p.phGraphNode, std::move(found));
    }
    case DriverCall::kAddNode: {
      const auto& p = *static_cast<const cuGraphAddNode_params*>(parameters);
      collect_node(*p.nodeParams, found);
      return set_node(*p.phGraphNode, std::move(found));
    }
    case DriverCall::kAddNodeEdges: {
      const auto& p = *static_cast<const cuGraphAddNode_v2_params*>(parameters);
      collect_node(*p.nodeParams, found);
      return set_node(*p.phGraphNode, std::move(found));
    }
    case DriverCall::kSetKernelNode: {
      const auto& p = *static_cast<const cuGraphKernelNodeSetParams_v2_params*>(parameters);
      scan_kernel_node(*p.nodeParams, found);
      return set_node(p.hNode, std::move(found));
    }
    case DriverCall::kSetExecKernelNode: {
      const auto& p = *static_cast<const cuGraphExecKernelNodeSetParams_v2_params*>(parameters);
      scan_kernel_node(*p.nodeParams, found);
      return set_clones(p.hGraphExec, p.hNode, found);
    }
    case DriverCall::kSetNode: {
      const auto& p = *static_cast<const cuGraphNodeSetParams_params*>(parameters);
      collect_node(*p.nodeParams, found);
      return set_node(p.hNode, std::move(found));
    }
    case DriverCall::kSetExecNode: {
      const auto& p = *static_cast<const cuGraphExecNodeSetParams_params*>(parameters);
      collect_node(*p.nodeParams, found);
      return set_clones(p.hGraphExec, p.hNode, found);
    }
    default:
      return;
  }
}

}  // namespace tidepool::inject
