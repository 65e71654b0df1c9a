#include "tests/fake_cuda/world.hpp"

#include <algorithm>

#include "tests/fake_cuda/memory.hpp"

namespace tidepool::cuda {
namespace {

bool runnable(const StreamTag& stream) {
  if (stream.items.empty() || stream.number + 1 == world().settings.hang) return false;
  const Item& item = stream.items.front();
  return item.wait == nullptr || item.wait->happened;
}

void do_first(StreamTag& stream) {
  const Item item = std::move(stream.items.front());
  stream.items.pop_front();
  stream.now = std::max(stream.now, item.given);
  if (item.work)
    if (const Status status = item.work(stream.now); status != kSuccess) world().failure = status;
  if (item.wait != nullptr) stream.now = std::max(stream.now, item.wait->when);
  if (item.record != nullptr) *item.record = {true, stream.now};
}

}  // namespace

World& world() {
  static World* const made = new World;
  return *made;
}

bool known(StreamTag* stream) {
  const auto& streams = world().streams;
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}
bool known(EventTag* event) { return world().events.contains(event); }
bool known(GraphTag* graph) { return world().graphs.contains(graph); }
bool known(GraphExecTag* exec) { return world().execs.contains(exec); }
bool known(FunctionTag* function) {
  if (world().modules == 0) return false;
  const auto& functions = world().functions;
  return std::any_of(functions.begin(), functions.end(), [&](const auto& each) { return &each.second == function; });
}

Status give(StreamTag* stream, Item item) {
  World& w = world();
  if (w.settings.die != 0 && ++w.given >= w.settings.die) w.failure = kLaunchFailed;
  if (w.failure != kSuccess) return w.failure;
  if (w.capture != nullptr && w.capture->streams.contains(stream)) {
    if (item.record == nullptr || item.external) w.capture->unjoined.insert(stream);
    w.capture->graph->items.emplace_back(stream, std::move(item));
    return kSuccess;
  }
  if (w.settings.submit != 0) {
    if (!w.launching) w.host += static_cast<double>(w.settings.submit);
    item.given = w.host;
  }
  stream->items.push_back(std::move(item));
  return kSuccess;
}

/// Half of the seeds have a stream that advances whenever it can; the other half have a stream that advances only when
/// no other can. The choice among the remaining streams is random.
bool go_on() {
  World& w = world();
  if (w.failure != kSuccess) return false;
  std::vector<StreamTag*> ready;
  for (StreamTag* stream : w.streams)
    if (runnable(*stream)) ready.push_back(stream);
  if (ready.empty()) return false;
  const DeviceAccess access;
  StreamTag* const chosen = w.streams[w.settings.seed / 2 % w.streams.size()];
  const auto found = std::find(ready.begin(), ready.end(), chosen);
  const bool first = w.settings.seed % 2 == 0;
  if (found != ready.end() && first) return do_first(*chosen), true;
  if (found != ready.end() && ready.size() > 1) ready.erase(found);
  do_first(*ready[w.random() % ready.size()]);
  return true;
}

void go_on_to_the_end() {
  const DeviceAccess access;
  while (go_on()) continue;
}

}  // namespace tidepool::cuda
