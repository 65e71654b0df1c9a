// Graphs of the fake: captured, instantiated and launched once.
#include <memory>
#include <set>
#include <utility>

#include "tests/fake_cuda/world.hpp"

namespace tidepool::cuda {

extern "C" {

Status cuStreamBeginCapture_v2(Stream stream, int mode) {
  if (const Status status = ready(stream); status != kSuccess) return status;
  World& w = world();
  if (mode < 0 || mode > kCaptureRelaxed || w.capture != nullptr) return kInvalid;
  w.capture = std::make_unique<Capture>(Capture{stream, std::make_unique<GraphTag>(), {stream}, {}, {}});
  return kSuccess;
}

Status cuStreamEndCapture(Stream stream, Graph* graph) {
  if (const Status status = ready(stream); status != kSuccess) return status;
  World& w = world();
  if (w.capture == nullptr) return kInvalid;
  if (w.capture->first != stream) return kCaptureUnmatched;
  const std::unique_ptr<Capture> capture = std::exchange(w.capture, nullptr);
  capture->unjoined.erase(stream);
  if (!capture->unjoined.empty()) {
    *graph = nullptr;
    return kCaptureUnjoined;
  }
  *graph = capture->graph.release();
  w.graphs.insert(*graph);
  return kSuccess;
}

Status cuGraphInstantiateWithFlags(GraphExec* made, Graph graph, unsigned long long flags) {
  if (const Status status = ready(graph); status != kSuccess) return status;
  if (flags != 0) return kInvalid;
  if (world().settings.graphs == 0) return kErrorOutOfMemory;
  --world().settings.graphs;
  *made = new GraphExecTag{*graph, {}};
  world().execs.insert(*made);
  return kSuccess;
}

Status cuGraphUpload(GraphExec exec, Stream stream) {
  if (const Status status = ready(exec, stream); status != kSuccess) return status;
  exec->uploaded = true;
  return kSuccess;
}

/// A graph may be launched only once, since its events are not recorded anew. Expects the stream on which the capture
/// began. The whole graph waits for the earlier work of that stream, and later work of the stream waits for the whole
/// graph.
Status cuGraphLaunch(GraphExec exec, Stream stream) {
  if (const Status status = ready(exec, stream); status != kSuccess) return status;
  World& w = world();
  w.host += static_cast<double>(w.settings.launch);
  if (!std::exchange(exec->uploaded, true) && w.settings.upload != 0)
    give(stream, Item{.work = [upload = static_cast<double>(w.settings.upload)](double& now) {
           now += upload;
           return kSuccess;
         }});
  exec->before.latest = std::make_shared<Record>();
  give(stream, Item{.record = exec->before.latest});
  w.launching = true;
  std::set<StreamTag*> begun{stream};
  for (auto& [to, item] : exec->graph.items) {
    if (begun.insert(to).second) give(to, Item{.wait = exec->before.latest});
    give(to, item);
  }
  w.launching = false;
  return w.failure;
}

Status cuGraphDestroy(Graph graph) {
  if (const Status status = ready(graph); status != kSuccess) return status;
  world().graphs.erase(graph);
  delete graph;
  return kSuccess;
}

Status cuGraphExecDestroy(GraphExec exec) {
  if (const Status status = ready(exec); status != kSuccess) return status;
  go_on_to_the_end();
  world().execs.erase(exec);
  delete exec;
  return kSuccess;
}

}  // extern "C"

}  // namespace tidepool::cuda
