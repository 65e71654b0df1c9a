// A stand-in for NVIDIA's driver, loaded as libcuda.so.1 where there is no GPU: device memory is host memory, kernels
// are those of kernels.cu, and streams are queues that go on only when somebody asks how far they are, in an order that is as
// unkind as events allow. What nobody waits for really happens too late or too early.
//
// TIDEPOOL_STANDIN, read by cuInit, says what it is like, as in "seed=3,memory=1048576":
//   seed     which stream goes on: each seed has one that is always first, or always last
//   memory   bytes of the device; pinned: bytes of pinned memory
//   devices  how many there are
//   lose     the n-th wait for an event does nothing, from 1
//   hang     nothing of the n-th stream ever goes on, from 1
//   die      the n-th command given fails, and all that follow, from 1
//   maps     0: memory cannot be mapped page by page
//   submit   ns that the host takes for a command; upload: ns of the first launch of a graph that was not uploaded
//   gap      ns before each kernel; tick: ns between two values of the global timer
#include "validator/cuda/driver.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/standin/answers.hpp"
#include "tests/standin/kernels.hpp"
#include "validator/cuda/kernels.hpp"

namespace tidepool::cuda {

struct ContextTag {};
struct ModuleTag {};
/// One record of an event. What waits for it does not care whether the event is recorded again.
struct Record {
  bool happened = false;
  double when = 0;  ///< ns
};
struct EventTag {
  bool timed = false;
  std::shared_ptr<Record> latest = {};
};
struct FunctionTag {
  std::string name;
  Binder binder = {};
};

namespace {

constexpr Status kInvalid = 1, kInvalidDevice = 101, kNotFound = 500;
constexpr double kLatency = 10'000, kBytesPerNanosecond = 12;  // of a copy, whichever way
constexpr double kWordsPerNanosecond = 125;                    // of a kernel that clears

struct Item {
  std::shared_ptr<Record> record = {}, wait = {};
  bool timed = false;  ///< the record keeps the time
  std::function<void(double& now)> work = {};
  double given = 0;  ///< ns at which the host had given it
};

}  // namespace

struct StreamTag {
  std::deque<Item> items;
  double now = 0;  ///< ns at which all that has been done was done
  std::size_t number = 0;
};

struct GraphTag {
  std::vector<std::pair<StreamTag*, Item>> items;
};
struct GraphExecTag {
  GraphTag graph;
  EventTag before;  ///< what its stream had been given when it was launched
  bool uploaded = false;
};

namespace {

struct Settings {
  std::uint64_t seed = 0, memory = std::uint64_t{1} << 34, pinned = std::uint64_t{1} << 34, devices = 1;
  std::uint64_t lose = 0, hang = 0, die = 0, maps = 1, submit = 0, upload = 0, gap = 0, tick = 1;
};

struct World {
  Settings settings;
  std::vector<StreamTag*> streams;
  std::vector<StreamTag*> lost;  ///< nobody has given them back
  std::set<EventTag*> events;
  std::mt19937_64 random;
  std::uint64_t used = 0, pinned = 0, waits = 0, given = 0;
  std::map<void*, std::uint64_t> sizes;
  std::map<std::string, FunctionTag> functions;
  GraphTag* capture = nullptr;
  std::set<StreamTag*> captured;         ///< streams that take part
  std::set<StreamTag*> unjoined;         ///< ... that have done something that the first has not waited for
  std::map<Record*, StreamTag*> forked;  ///< by whom, in the capture
  bool dead = false, launching = false;
  double host = 0;  ///< ns, where submission takes time
};

/// Never ends, so that what a device that hangs has not given back is still known at exit.
World& world() {
  static World* const made = new World;
  return *made;
}

bool runnable(const StreamTag& stream) {
  if (stream.items.empty() || stream.number + 1 == world().settings.hang) return false;
  const Item& item = stream.items.front();
  return item.wait == nullptr || item.wait->happened;
}

void do_first(StreamTag& stream) {
  const Item item = std::move(stream.items.front());
  stream.items.pop_front();
  stream.now = std::max(stream.now, item.given);
  if (item.work) item.work(stream.now);
  if (item.wait != nullptr) stream.now = std::max(stream.now, item.wait->when);
  if (item.record == nullptr) return;
  *item.record = {true, stream.now};
}

/// Lets one stream that can go on do so. Half of the seeds have one that goes on whenever it can, half one that goes on
/// only when no other can; among the others chance decides.
bool go_on() {
  World& w = world();
  std::vector<StreamTag*> ready;
  for (StreamTag* stream : w.streams)
    if (runnable(*stream)) ready.push_back(stream);
  if (ready.empty()) return false;
  StreamTag* const chosen = w.streams[w.settings.seed / 2 % w.streams.size()];
  const auto found = std::find(ready.begin(), ready.end(), chosen);
  const bool first = w.settings.seed % 2 == 0;
  if (found != ready.end() && first) return do_first(*chosen), true;
  if (found != ready.end() && ready.size() > 1) ready.erase(found);
  do_first(*ready[w.random() % ready.size()]);
  return true;
}

Status give(StreamTag* stream, Item item) {
  World& w = world();
  if (w.dead || (w.settings.die != 0 && ++w.given >= w.settings.die)) {
    w.dead = true;
    return kLaunchFailed;
  }
  if (w.capture != nullptr && w.captured.contains(stream)) {
    if (item.record == nullptr || item.timed) w.unjoined.insert(stream);
    w.capture->items.emplace_back(stream, std::move(item));
    return kSuccess;
  }
  if (w.settings.submit != 0) {
    if (!w.launching) w.host += static_cast<double>(w.settings.submit);
    item.given = w.host;
  }
  stream->items.push_back(std::move(item));
  return kSuccess;
}

Status answer(bool done) {
  if (world().dead) return kLaunchFailed;
  return done ? kSuccess : kErrorNotReady;
}

Status give_work(StreamTag* stream, std::function<void(double&)> work) {
  return give(stream, Item{.record = {}, .wait = {}, .timed = false, .work = std::move(work)});
}

Status move(StreamTag* stream, void* to, const void* from, std::size_t size) {
  return give_work(stream, [=](double& now) {
    std::memcpy(to, from, size);
    now += kLatency + static_cast<double>(size) / kBytesPerNanosecond;
  });
}

/// ns that a kernel takes for its memory, beside what its code takes.
double memory_time(const std::string& name, void** arguments) {
  if (name == "tidepool_multiply") return 1000;
  if (name != "tidepool_clear") return 0;
  const Span* span = nullptr;
  unsigned index = 0;
  std::memcpy(&span, arguments[0], sizeof span);
  std::memcpy(&index, arguments[1], sizeof index);
  return static_cast<double>(span[index].covered) / kWordsPerNanosecond;
}

Status take(void** memory, std::size_t size, std::uint64_t& used, std::uint64_t most) {
  if (used + size > most) return kErrorOutOfMemory;
  *memory = std::calloc(size + 1, 1);
  if (*memory == nullptr) return kErrorOutOfMemory;
  used += size;
  world().sizes[*memory] = size;
  return kSuccess;
}

Status give_back(void* memory, std::uint64_t& used) {
  const auto found = world().sizes.find(memory);
  if (found == world().sizes.end()) return kInvalid;
  used -= found->second;
  world().sizes.erase(found);
  std::free(memory);
  return kSuccess;
}

Status record(EventTag* event, StreamTag* stream) {
  World& w = world();
  event->latest = std::make_shared<Record>();
  if (w.capture != nullptr && w.captured.contains(stream) && !event->timed) w.forked[event->latest.get()] = stream;
  return give(stream, Item{.record = event->latest, .wait = {}, .timed = event->timed, .work = {}});
}

}  // namespace

extern "C" {

Status cuInit(unsigned) {
  World& w = world();
  w.settings = {};
  std::istringstream text{std::getenv("TIDEPOOL_STANDIN") != nullptr ? std::getenv("TIDEPOOL_STANDIN") : ""};
  const std::map<std::string, std::uint64_t Settings::*> known{
      {"seed", &Settings::seed},       {"memory", &Settings::memory}, {"pinned", &Settings::pinned},
      {"devices", &Settings::devices}, {"lose", &Settings::lose},     {"hang", &Settings::hang},
      {"die", &Settings::die},         {"maps", &Settings::maps},     {"submit", &Settings::submit},
      {"upload", &Settings::upload},   {"gap", &Settings::gap},       {"tick", &Settings::tick}};
  for (std::string part; std::getline(text, part, ',');) {
    const auto at = part.find('=');
    w.settings.*known.at(part.substr(0, at)) = std::stoull(part.substr(at + 1));
  }
  w.random.seed(w.settings.seed);
  w.lost.insert(w.lost.end(), w.streams.begin(), w.streams.end());
  w.streams.clear();
  w.waits = w.given = 0;
  w.dead = false;
  return kSuccess;
}

Status cuDeviceGetCount(int* count) {
  *count = static_cast<int>(world().settings.devices);
  return kSuccess;
}
Status cuDeviceGet(Device* device, int index) {
  *device = index;
  return index < static_cast<int>(world().settings.devices) ? kSuccess : kInvalidDevice;
}
Status cuDeviceGetName(char* name, int size, Device) {
  std::strncpy(name, "stand-in", static_cast<std::size_t>(size));
  return kSuccess;
}
Status cuDeviceGetAttribute(int* value, int attribute, Device) {
  *value = attribute == kAttributeMajor        ? 9
           : attribute == kAttributeMinor      ? 0
           : attribute == kAttributeMapsMemory ? static_cast<int>(world().settings.maps)
                                               : 2;
  return kSuccess;
}
Status cuDevicePrimaryCtxRetain(Context* context, Device) {
  static ContextTag made;
  *context = &made;
  return kSuccess;
}
Status cuDevicePrimaryCtxRelease_v2(Device) { return kSuccess; }
Status cuCtxSetCurrent(Context) { return kSuccess; }
Status cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *total = world().settings.memory;
  *free = *total - world().used;
  return kSuccess;
}
Status cuMemAlloc_v2(Address* address, std::size_t size) {
  void* memory = nullptr;
  const Status status = take(&memory, size, world().used, world().settings.memory);
  *address = reinterpret_cast<Address>(memory);
  return status;
}
Status cuMemFree_v2(Address address) { return give_back(reinterpret_cast<void*>(address), world().used); }
Status cuMemHostAlloc(void** memory, std::size_t size, unsigned) {
  return take(memory, size, world().pinned, world().settings.pinned);
}
Status cuMemFreeHost(void* memory) { return give_back(memory, world().pinned); }
Status cuMemcpyHtoD_v2(Address to, const void* from, std::size_t size) {
  std::memcpy(reinterpret_cast<void*>(to), from, size);
  return kSuccess;
}
Status cuMemcpyDtoH_v2(void* to, Address from, std::size_t size) {
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  return kSuccess;
}
Status cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t size, Stream stream) {
  return move(stream, reinterpret_cast<void*>(to), from, size);
}
Status cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t size, Stream stream) {
  return move(stream, to, reinterpret_cast<const void*>(from), size);
}
Status cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t size, Stream stream) {
  return move(stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
}
Status cuModuleLoadData(Module* module, const void*) {
  static ModuleTag made;
  *module = &made;
  return kSuccess;
}
Status cuModuleUnload(Module) { return kSuccess; }
Status cuModuleGetFunction(Function* function, Module, const char* name) {
  const Binder binder = find_kernel(name);
  if (!binder) return kNotFound;
  FunctionTag& made = world().functions[name];
  made = {name, binder};
  *function = &made;
  return kSuccess;
}
Status cuLaunchKernel(Function function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                      unsigned, Stream stream, void** arguments, void**) {
  const Settings& settings = world().settings;
  const auto gap = static_cast<double>(settings.gap);
  // The blocks that multiply all do the same.
  const LaunchSize size{function->name == "tidepool_multiply" ? 1U : blocks, threads, settings.tick};
  const double work = memory_time(function->name, arguments);
  return give_work(stream, [gap, work, size, kernel = function->binder(arguments)](double& now) {
    now += gap;
    kernel(size, now);
    now += work;
  });
}
Status cuStreamCreate(Stream* stream, unsigned) {
  *stream = new StreamTag{.items = {}, .number = world().streams.size()};
  world().streams.push_back(*stream);
  return kSuccess;
}
Status cuStreamDestroy_v2(Stream stream) {
  std::erase(world().streams, stream);
  delete stream;
  return kSuccess;
}
Status cuStreamQuery(Stream stream) {
  for (int i = 0; i < 64 && !stream->items.empty() && go_on(); ++i) continue;
  return answer(stream->items.empty());
}
Status cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  World& w = world();
  if (++w.waits == w.settings.lose) return kSuccess;
  if (event->latest == nullptr) return kSuccess;
  if (w.capture != nullptr) {
    const auto forked = w.forked.find(event->latest.get());
    if (forked == w.forked.end()) return kInvalid;
    w.captured.insert(stream);
    const StreamTag* const first = w.capture->items.empty() ? stream : w.capture->items.front().first;
    if (stream == first) w.unjoined.erase(forked->second);
  }
  return give(stream, Item{.record = {}, .wait = event->latest, .timed = false, .work = {}});
}
Status cuEventCreate(Event* event, unsigned flags) {
  *event = new EventTag{.timed = (flags & kEventNoTiming) == 0};
  world().events.insert(*event);
  return kSuccess;
}
Status cuEventDestroy_v2(Event event) {
  world().events.erase(event);
  delete event;
  return kSuccess;
}
Status cuEventRecord(Event event, Stream stream) { return record(event, stream); }
Status cuEventRecordWithFlags(Event event, Stream stream, unsigned) { return record(event, stream); }
Status cuEventQuery(Event event) {
  for (int i = 0; i < 64 && event->latest != nullptr && !event->latest->happened && go_on(); ++i) continue;
  if (event->latest != nullptr && event->latest->happened) world().host = std::max(world().host, event->latest->when);
  return answer(event->latest == nullptr || event->latest->happened);
}
Status cuEventElapsedTime(float* milliseconds, Event from, Event to) {
  if (!from->timed || !to->timed || !from->latest || !to->latest || !from->latest->happened || !to->latest->happened)
    return kInvalid;
  *milliseconds = static_cast<float>((to->latest->when - from->latest->when) / 1e6);
  return kSuccess;
}
Status cuStreamBeginCapture_v2(Stream stream, int) {
  World& w = world();
  w.capture = new GraphTag;
  w.captured = {stream};
  w.forked.clear(), w.unjoined.clear();
  return kSuccess;
}
Status cuStreamEndCapture(Stream stream, Graph* graph) {
  World& w = world();
  *graph = std::exchange(w.capture, nullptr);
  w.unjoined.erase(stream);
  return w.unjoined.empty() ? kSuccess : kUnjoined;
}
Status cuGraphInstantiateWithFlags(GraphExec* made, Graph graph, unsigned long long) {
  *made = new GraphExecTag{*graph, {}};
  return kSuccess;
}
Status cuGraphUpload(GraphExec exec, Stream) {
  exec->uploaded = true;
  return kSuccess;
}
/// A graph is launched once, so that its records need not be made anew. All of it waits for what its stream has been
/// given before.
Status cuGraphLaunch(GraphExec exec, Stream stream) {
  World& w = world();
  if (!std::exchange(exec->uploaded, true) && w.settings.upload != 0)
    give_work(stream, [upload = static_cast<double>(w.settings.upload)](double& now) { now += upload; });
  record(&exec->before, stream);
  w.launching = true;
  std::set<StreamTag*> begun{stream};
  for (auto& [to, item] : exec->graph.items) {
    if (begun.insert(to).second) give(to, Item{.record = {}, .wait = exec->before.latest, .timed = false, .work = {}});
    give(to, item);
  }
  w.launching = false;
  return answer(true);
}
Status cuGraphDestroy(Graph graph) {
  delete graph;
  return kSuccess;
}
Status cuGraphExecDestroy(GraphExec exec) {
  delete exec;
  return kSuccess;
}

}  // extern "C"

}  // namespace tidepool::cuda
