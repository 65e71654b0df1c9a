// State of the fake of a driver: its settings, and every valid handle.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fake_cuda/kernels.hpp"
#include "validator/cuda/driver.hpp"

namespace tidepool::cuda {

inline constexpr Status kInvalid = 1, kNotInitialized = 3, kInvalidDevice = 101, kInvalidContext = 201,
                        kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700, kLaunchFailed = 719,
                        kCaptureUnsupported = 900, kCaptureUnmatched = 903, kCaptureUnjoined = 904,
                        kCaptureIsolation = 905, kCapturedEvent = 907;

struct ContextTag {};
struct ModuleTag {};

/// One record of an event. A wait for it does not depend on later records of the event.
struct Record {
  bool happened = false;
  double when = 0;  ///< ns
};
struct EventTag {
  bool timed = false;
  bool captured = false;  ///< the latest record is a dependency within a graph, not a point in time
  std::shared_ptr<Record> latest = {};
};
struct FunctionTag {
  std::string name;
  Binder binder = {};
};

struct Item {
  std::shared_ptr<Record> record = {}, wait = {};
  bool external = false;  ///< the graph records the event whenever it runs
  std::function<Status(double& now)> work = {};
  double given = 0;  ///< ns at which the host submitted it
};
struct StreamTag {
  std::deque<Item> items;
  double now = 0;  ///< ns at which the latest finished work ended
  std::size_t number = 0;
};
struct GraphTag {
  std::vector<std::pair<StreamTag*, Item>> items;
};
struct GraphExecTag {
  GraphTag graph;
  EventTag before;  ///< recorded at launch, behind the earlier work of the stream
  bool uploaded = false;
};

struct Settings {
  std::uint64_t seed = 0, memory = std::uint64_t{1} << 34, pinned = std::uint64_t{1} << 34, devices = 1;
  std::uint64_t lose = 0, hang = 0, die = 0, maps = 1, submit = 0, upload = 0, launch = 0, gap = 0, tick = 1;
  std::uint64_t large = ~std::uint64_t{0}, graphs = ~std::uint64_t{0};
};

/// The current capture.
struct Capture {
  StreamTag* first = nullptr;
  std::unique_ptr<GraphTag> graph;
  std::set<StreamTag*> streams;          ///< streams whose work is captured
  std::set<StreamTag*> unjoined;         ///< streams with work that the first stream has not waited for
  std::map<Record*, StreamTag*> forked;  ///< the stream that made each record
};

struct World {
  Settings settings;
  bool initialized = false, launching = false;
  std::size_t retained = 0;         ///< number of holders of the context
  Status failure = kSuccess;        ///< failure of the device, which is the answer of all later calls
  std::vector<StreamTag*> streams;  ///< in the order in which they were made
  std::vector<StreamTag*> lost;     ///< streams of earlier devices, never released
  std::set<EventTag*> events;
  std::set<GraphTag*> graphs;
  std::set<GraphExecTag*> execs;
  std::map<std::string, FunctionTag> functions;
  std::size_t modules = 0;
  std::mt19937_64 random;
  std::uint64_t waits = 0, given = 0;
  std::unique_ptr<Capture> capture;
  double host = 0;  ///< ns on the host's clock, if submission takes time
};

/// Never destroyed, so that the unreleased handles of a device that hangs are still known at exit.
World& world();

/// Success if this thread may call the driver: it is initialised, a context is current, and the device has not failed.
Status ready();
/// Success if ready() succeeds and the handles are valid.
template <class... Handles>
Status ready(Handles... handles);

bool known(StreamTag* stream);
bool known(EventTag* event);
bool known(GraphTag* graph);
bool known(GraphExecTag* exec);
bool known(FunctionTag* function);

template <class... Handles>
Status ready(Handles... handles) {
  if (const Status status = ready(); status != kSuccess) return status;
  return (known(handles) && ...) ? kSuccess : kInvalidHandle;
}

/// Gives a command to a stream, or to the capture that the stream takes part in.
Status give(StreamTag* stream, Item item);
/// Lets one stream that can advance do so. @return false if none can
bool go_on();
/// Lets streams advance until none can.
void go_on_to_the_end();

}  // namespace tidepool::cuda
