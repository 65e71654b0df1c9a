// Traces of torch.profiler (Kineto), of any generation since 2021.
#include "traces/import/kineto.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/base/refuse.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/kineto_contexts.hpp"
#include "traces/import/kineto_lifetimes.hpp"
#include "traces/import/kineto_waits.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/recorded_names.hpp"

namespace tidepool {
namespace {

constexpr std::string_view kStep = "ProfilerStep#";
constexpr std::string_view kNccl = "nccl:";
constexpr std::size_t kNoLifetime = KinetoLifetimes::kNone;
constexpr Nanos kBeforeAll{std::numeric_limits<std::int64_t>::min()};  // of activities launched before the profile

/// Kinds of events in their order at equal times. Memory is allocated before launches. Frees come after launches if no
/// allocation at that time follows them (kLastFree).
enum class What : std::uint8_t { kRangeEnd, kIteration, kRangeBegin, kMemory, kLaunch, kWait, kLastFree };

struct KinetoHappening {
  Nanos time;
  What what = What::kLaunch;
  std::size_t index = 0;  ///< of the activity, the wait, the lifetimes' event, or the range
};

std::set<std::int64_t> choose_devices(const Kineto& file, std::optional<std::int64_t> only) {
  std::set<std::int64_t> devices;
  for (const KinetoActivity& activity : file.activities) devices.insert(activity.device);
  for (const KinetoMemory& memory : file.memory) devices.insert(memory.device);
  if (devices.empty() && !file.foreign.empty())
    refuse(
        "the device activity is of an MTIA accelerator (\"{}\"), which tidepool does not read; expected a profile of "
        "the program on a GPU, or a dry run (tidepool record --dry)",
        file.foreign);
  if (devices.empty()) refuse("no activity and no memory of a device; expected a profile of a program on a GPU");
  if (!only) return devices;
  if (!devices.contains(*only)) refuse("no device {}; the file has {}", *only, fmt::join(devices, ", "));
  return {*only};
}

/// The names of the devices' streams in the file, by device and number; one name if the file has no such stream.
std::vector<std::string> stream_names(const Kineto& file, const std::set<std::int64_t>& devices) {
  std::set<std::pair<std::int64_t, std::int64_t>> streams;
  for (const KinetoActivity& activity : file.activities)
    if (devices.contains(activity.device)) streams.emplace(activity.device, activity.stream);
  if (streams.size() > kMostStreams) refuse("more than {} streams", kMostStreams);
  std::vector<std::string> names;
  for (const auto& [device, stream] : streams) names.push_back(stream_name(device, stream));
  if (names.empty()) names.push_back(stream_name(*devices.begin(), 0));
  return names;
}

class KinetoImport {
 public:
  KinetoImport(const Kineto& file, std::optional<std::int64_t> only, const KinetoOperands* operands = nullptr)
      : file_{file},
        operands_{operands},
        devices_{choose_devices(file, only)},
        lifetimes_{operands == nullptr ? find_lifetimes(file.memory, only) : KinetoLifetimes{}},
        builder_{stream_names(file, devices_)} {}

  /// Builds the trace; if as_rank_ is set, with the further data of a rank.
  Trace run() {
    add_activities();
    if (as_rank_) add_waits();
    add_memory();
    add_marks();
    std::stable_sort(happenings_.begin(), happenings_.end(), [](const KinetoHappening& a, const KinetoHappening& b) {
      return std::tie(a.time, a.what) < std::tie(b.time, b.what);
    });
    for (const KinetoHappening& happening : happenings_)
      if (happening.time != kBeforeAll) begin_ = std::min(begin_, happening.time);
    find_surroundings();
    add_existing();
    if (operands_ != nullptr) find_operand_lives();
    for (const KinetoHappening& happening : happenings_) add(happening);
    builder_.losses().dropped_records += lifetimes_.lost;
    describe();
    return builder_.finish();
  }

  KinetoRank run_as_rank() {
    as_rank_ = true;
    Trace trace = run();
    return {std::move(trace), begin_, std::move(collectives_)};
  }

 private:
  /// Adds activities at the times of their launches. On a stream, they keep the order in which they ran.
  void add_activities() {
    std::unordered_map<std::int64_t, std::size_t> launches;  // by correlation
    for (std::size_t i = 0; i < file_.launches.size(); ++i) launches.try_emplace(file_.launches[i].correlation, i);
    std::vector<std::size_t> by_start;
    launch_.assign(file_.activities.size(), kNoLifetime);
    for (std::size_t i = 0; i < file_.activities.size(); ++i) {
      if (!devices_.contains(file_.activities[i].device)) continue;
      by_start.push_back(i);
      const auto found = launches.find(file_.activities[i].correlation);
      if (found != launches.end() && found->first != -1) launch_[i] = found->second;
      builder_.losses().dropped_records += file_.activities[i].duration < Nanos{};
    }
    std::stable_sort(by_start.begin(), by_start.end(), [&](std::size_t a, std::size_t b) {
      return file_.activities[a].start < file_.activities[b].start;
    });
    std::set<std::pair<std::int64_t, std::int64_t>> launching;  // devices and streams
    for (const std::size_t i : by_start)
      if (launch_[i] != kNoLifetime) launching.emplace(file_.activities[i].device, file_.activities[i].stream);
    std::map<std::pair<std::int64_t, std::int64_t>, Nanos> issued;  // by device and stream: time of the last activity
    for (const std::size_t i : by_start) {
      const KinetoActivity& activity = file_.activities[i];
      const std::pair stream{activity.device, activity.stream};
      const bool launched = launch_[i] != kNoLifetime;
      // A stream runs in the order of launches: what it runs before its first recorded launch was launched earlier.
      if (!launched && launching.contains(stream) && !issued.contains(stream)) {
        earlier_.push_back(i);
        happenings_.push_back({kBeforeAll, What::kLaunch, i});
        begin_ = std::min(begin_, activity.start);
        continue;
      }
      builder_.losses().dropped_records += !launched;
      const Nanos time = launched ? file_.launches[launch_[i]].time : activity.start;
      const auto [last, first] = issued.try_emplace(stream, time);
      // If its launch is lost, an activity directly follows the one before it on its stream.
      if (!first && launched) last->second = std::max(last->second, time);
      happenings_.push_back({last->second, What::kLaunch, i});
      begin_ = std::min({begin_, time, activity.start});
    }
  }

  /// Adds waits in the order of the host's calls. A copy that had ended when its call returned counts as a wait, too.
  void add_waits() {
    waits_ = file_.waits;
    for (std::size_t i = 0; i < file_.activities.size(); ++i) {
      const KinetoActivity& activity = file_.activities[i];
      if (activity.kind != OpKind::kCopy || launch_[i] == kNoLifetime || activity.duration < Nanos{}) continue;
      const KinetoLaunch& launch = file_.launches[launch_[i]];
      if (activity.start + activity.duration <= launch.end)
        waits_.push_back({KinetoWaitKind::kStream, activity.name, launch.thread, launch.time, launch.end});
    }
    for (std::size_t i = 0; i < waits_.size(); ++i) happenings_.push_back({waits_[i].begin, What::kWait, i});
  }

  void add_memory() {
    const auto memory = [&](std::size_t event) -> const KinetoMemory& {
      return file_.memory[lifetimes_.events[event].memory];
    };
    for (std::size_t first = 0, next = 0; first < lifetimes_.events.size(); first = next) {
      std::size_t frees = first;  // from here on, only frees at this time
      for (next = first; next < lifetimes_.events.size() && memory(next).time == memory(first).time; ++next)
        if (memory(next).bytes > 0) frees = next + 1;
      for (std::size_t i = first; i < next; ++i)
        happenings_.push_back({memory(i).time, i < frees ? What::kMemory : What::kLastFree, i});
    }
  }

  void add_marks() {
    for (std::size_t i = 0; i < file_.ranges.size(); ++i) {
      const KinetoRange& range = file_.ranges[i];
      if (range.kind != KinetoRangeKind::kAnnotation) continue;
      if (file_.texts[range.name].starts_with(kStep)) {
        happenings_.push_back({range.begin, What::kIteration, i});
        continue;
      }
      happenings_.push_back({range.begin, What::kRangeBegin, i});
      happenings_.push_back({std::max(range.end, range.begin + Nanos{1}), What::kRangeEnd, i});
    }
  }

  bool is_memory(const KinetoHappening& happening) const {
    return happening.what == What::kMemory || happening.what == What::kLastFree;
  }
  const KinetoMemory& memory_of(const KinetoHappening& happening) const {
    return file_.memory[lifetimes_.events[happening.index].memory];
  }

  /// Finds the ranges around each launch and allocation, and the stream for which memory was allocated: that of the
  /// next launch on the device by the thread that allocated it.
  void find_surroundings() {
    std::vector<KinetoMoment> moments;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> next;  // stream by device and thread
    streams_.assign(happenings_.size(), {});
    for (std::size_t i = happenings_.size(); i-- > 0;) {
      const KinetoHappening& happening = happenings_[i];
      KinetoMoment moment{.thread = {}, .time = happening.time};
      if (happening.what == What::kLaunch && launch_[happening.index] != kNoLifetime) {
        const KinetoActivity& activity = file_.activities[happening.index];
        const KinetoLaunch& launch = file_.launches[launch_[happening.index]];
        moment = {launch.thread, launch.time};
        next[{activity.device, launch.thread}] = activity.stream;
      } else if (is_memory(happening)) {
        const KinetoMemory& memory = memory_of(happening);
        moment = {memory.thread, memory.time};
        const auto found = next.find({memory.device, memory.thread});
        if (found != next.end()) streams_[i] = found->second;
      }
      moments.push_back(moment);
    }
    std::reverse(moments.begin(), moments.end());
    contexts_ = find_contexts(file_, moments);
  }

  Buffer spec(const KinetoLifetimes::Life& life) {
    Buffer buffer;
    buffer.size = Bytes{life.bytes};
    buffer.address = life.address;
    buffer.device = static_cast<std::uint16_t>(life.device);
    return buffer;
  }

  void add_existing() {
    for (const auto& [device, bytes] : lifetimes_.kept) {
      Buffer buffer = spec({device, -1, bytes, true});
      buffer.name = builder_.text("allocated before and never freed");
      builder_.existing(buffer);
    }
    buffers_.resize(lifetimes_.lives.size());
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (lifetimes_.lives[i].born_before) buffers_[i] = builder_.existing(spec(lifetimes_.lives[i]));
  }

  /// Finds the launches before which a buffer of the operands begins, and those after which one ends.
  void find_operand_lives() {
    const std::vector<KinetoOperands::Life>& lives = operands_->lives;
    begins_.resize(happenings_.size());
    ends_.resize(happenings_.size());
    buffers_.resize(lives.size());
    called_.resize(operands_->uses.size());
    for (std::size_t i = 0; i < lives.size(); ++i)
      if (lives[i].born_before) buffers_[i] = builder_.existing(operand(lives[i]));
    std::vector<std::size_t> last(lives.size(), kNoLifetime);
    for (std::size_t i = 0; i < happenings_.size(); ++i)
      for (const KinetoOperands::Use& use : uses_of(happenings_[i])) {
        if (last[use.life] == kNoLifetime && !lives[use.life].born_before) begins_[i].push_back(use.life);
        last[use.life] = i;
      }
    for (std::size_t i = 0; i < lives.size(); ++i)
      if (last[i] != kNoLifetime && !lives[i].outlives) ends_[last[i]].push_back(i);
  }

  static Buffer operand(const KinetoOperands::Life& life) {
    Buffer buffer;
    buffer.size = Bytes{life.bytes};
    buffer.device = static_cast<std::uint16_t>(life.device);
    return buffer;
  }

  std::span<const KinetoOperands::Use> uses_of(const KinetoHappening& happening) const {
    if (operands_ == nullptr || happening.what != What::kLaunch) return {};
    const std::size_t call = operands_->calls[happening.index];
    if (call == KinetoOperands::kNone) return {};
    return operands_->uses[call];
  }

  /// Runs an activity. Operands begin directly before the first activity that uses them, and end after the last one.
  void launch(const KinetoHappening& happening, std::size_t position) {
    const std::span<const KinetoOperands::Use> uses = uses_of(happening);
    std::vector<TraceBuilder::Touch> touches;
    if (!uses.empty()) {
      for (const std::size_t life : begins_[position]) buffers_[life] = builder_.alloc(operand(operands_->lives[life]));
      const std::size_t call = operands_->calls[happening.index];
      for (const KinetoOperands::Use& use : uses)
        touches.push_back({buffers_[use.life],
                           called_[call] && use.access == Access::kWrite ? Access::kReadWrite : use.access,
                           use.evidence});
      called_[call] = true;
    }
    run_activity(happening.index, contexts_[position], touches);
    if (!uses.empty())
      for (const std::size_t life : ends_[position]) builder_.free(buffers_[life]);
  }

  void add(const KinetoHappening& happening) {
    const auto position = static_cast<std::size_t>(&happening - happenings_.data());
    switch (happening.what) {
      case What::kIteration:
        builder_.mark(MarkKind::kIteration, name_of_range(happening).substr(kStep.size()));
        break;
      case What::kRangeBegin:
        builder_.mark(MarkKind::kRangeBegin, name_of_range(happening));
        break;
      case What::kRangeEnd:
        builder_.mark(MarkKind::kRangeEnd, name_of_range(happening));
        break;
      case What::kLaunch:
        launch(happening, position);
        break;
      case What::kWait:
        wait(waits_[happening.index]);
        break;
      case What::kMemory:
      case What::kLastFree:
        change_memory(happening, position);
        break;
    }
  }

  std::string_view name_of_range(const KinetoHappening& happening) const {
    return file_.texts[file_.ranges[happening.index].name];
  }

  void run_activity(std::size_t index, const KinetoContext& context, const std::vector<TraceBuilder::Touch>& touches) {
    const KinetoActivity& activity = file_.activities[index];
    Op op;
    op.name = builder_.text(file_.texts[activity.name]);
    op.module = builder_.text(context.module);
    op.stream = builder_.stream(stream_name(activity.device, activity.stream));
    op.kind = activity.kind;
    op.phase = context.phase;
    op.start = activity.start - begin_;
    op.duration = std::max(activity.duration, Nanos{});
    if (launch_[index] != kNoLifetime) op.launch = file_.launches[launch_[index]].time - begin_;
    builder_.run(op, touches);
    if (as_rank_) follow(index, context);
  }

  /// Adds the further data of a rank's trace to an activity: the ops that it waits for, and its collective.
  void follow(std::size_t index, const KinetoContext& context) {
    const KinetoActivity& activity = file_.activities[index];
    const KinetoWaits::Stream stream{activity.device, activity.stream};
    std::optional<std::int64_t> thread;
    if (launch_[index] != kNoLifetime) thread = file_.launches[launch_[index]].thread;
    const OpId op = builder_.last_op();
    for (const OpId before : issued_.before(thread, stream, activity.start)) builder_.order(before, op);
    issued_.issued(thread, stream, op, activity.start + std::max(activity.duration, Nanos{}));
    if (activity.kind != OpKind::kCollective) return;
    KinetoCollective found{.op = op, .name = file_.texts[activity.name]};
    if (context.communication) {
      const KinetoRange& range = file_.ranges[*context.communication];
      found.name = file_.texts[range.name].substr(kNccl.size());
      found.input_bytes = range.input_bytes;
    }
    if (activity.group_ranks) found.group_ranks = file_.texts[*activity.group_ranks];
    collectives_.push_back(std::move(found));
  }

  /// Adds a wait of the host. It lasts from the call or from the end of the awaited work, whichever is later, to the
  /// return of the call.
  void wait(const KinetoWait& wait) {
    if (wait.kind == KinetoWaitKind::kEvent) return issued_.event_wait(wait.thread);
    const std::optional<KinetoWaits::Stream> stream = issued_.waited_for(wait);
    if (!stream) return;
    Nanos ended = issued_.last_end(*stream);
    std::vector<OpId> others;
    if (wait.kind == KinetoWaitKind::kDevice)
      for (const KinetoWaits::Stream& other : issued_.ended_by(wait.end)) {
        if (other == *stream) continue;
        others.push_back(issued_.last(other));
        ended = std::max(ended, issued_.last_end(other));
      }
    Op op;
    op.name = builder_.text(file_.texts[wait.name]);
    op.stream = builder_.stream(stream_name(stream->first, stream->second));
    op.kind = OpKind::kHostWait;
    const Nanos start = std::clamp(ended, wait.begin, wait.end);
    op.launch = wait.begin - begin_;
    op.start = start - begin_;
    op.duration = wait.end - start;
    builder_.run(op, {});
    for (const OpId before : others) builder_.order(before, builder_.last_op());
    issued_.issued(wait.thread, *stream, builder_.last_op(), wait.end);
  }

  void change_memory(const KinetoHappening& happening, std::size_t position) {
    const KinetoLifetimes::Event& event = lifetimes_.events[happening.index];
    if (event.ends != kNoLifetime) builder_.free(buffers_[event.ends]);
    if (event.begins == kNoLifetime) return;
    const KinetoLifetimes::Life& life = lifetimes_.lives[event.begins];
    Buffer buffer = spec(life);
    if (streams_[position]) buffer.stream = builder_.stream(stream_name(life.device, *streams_[position]));
    const std::optional<KinetoText> name = contexts_[position].operator_name;
    if (name) buffer.name = builder_.text(file_.texts[*name]);
    buffers_[event.begins] = builder_.alloc(buffer);
  }

  void describe() {
    std::map<std::string, std::string>& meta = builder_.meta();
    meta["source"] = "kineto";
    meta["time"] = "measured";
    const auto device = file_.devices.find(*devices_.begin());
    if (device != file_.devices.end()) meta["device"] = device->second;
    if (!earlier_.empty())
      meta["earlier"] = fmt::format("{} {} launched before the profile began, and {} to an earlier step",
                                    earlier_.size(), earlier_.size() == 1 ? "activity was" : "activities were",
                                    earlier_.size() == 1 ? "belongs" : "belong");
    if (!file_.memory.empty()) state_peaks();
    if (operands_ != nullptr)
      meta["lifetimes"] = "from the first to the last kernel that uses the buffer: frees are not recorded";
    else if (file_.activities.empty() && !file_.foreign.empty())
      meta["lacks"] =
          fmt::format("ops: the device activity is of an MTIA accelerator (\"{}\"), which is not read", file_.foreign);
    else if (file_.memory.empty())
      meta["lacks"] = file_.has_host_memory
                          ? "memory events of the device, all are of the host: this is a timeline only"
                          : "memory events: this is a timeline only; profile with profile_memory=True";
    else
      meta["memory"] = lifetimes_.by_size ? "block sizes of the allocator; frees matched by size, no addresses recorded"
                                          : "block sizes of the allocator";
  }

  /// What the allocator itself said: the most bytes reserved and allocated at once. Only if one device has memory, and
  /// all events say it.
  void state_peaks() {
    std::int64_t reserved = 0, allocated = 0;
    std::optional<std::int64_t> device;
    for (const KinetoMemory& memory : file_.memory) {
      if (!devices_.contains(memory.device)) continue;
      if (device.value_or(memory.device) != memory.device || memory.reserved < 0 || memory.total < 0) return;
      device = memory.device;
      reserved = std::max(reserved, memory.reserved);
      allocated = std::max({allocated, memory.total, memory.total - memory.bytes});
    }
    builder_.meta()["reserved_peak_bytes"] = std::to_string(reserved);
    builder_.meta()["allocated_peak_bytes"] = std::to_string(allocated);
  }

  const Kineto& file_;
  const KinetoOperands* operands_;
  std::set<std::int64_t> devices_;
  KinetoLifetimes lifetimes_;
  TraceBuilder builder_;
  std::vector<std::size_t> launch_;   // by activity
  std::vector<std::size_t> earlier_;  // activities that were launched before the profile began
  std::vector<KinetoHappening> happenings_;
  Nanos begin_{std::numeric_limits<std::int64_t>::max()};
  std::vector<KinetoContext> contexts_;                  // by happening
  std::vector<std::optional<std::int64_t>> streams_;     // by happening
  std::vector<BufferId> buffers_;                        // by life, of lifetimes_ or of operands_
  std::vector<std::vector<std::size_t>> begins_, ends_;  // by happening: lives of operands_
  std::vector<bool> called_;                             // by call of operands_: an activity of it ran

  bool as_rank_ = false;  // see to_rank()
  std::vector<KinetoWait> waits_;
  KinetoWaits issued_;
  std::vector<KinetoCollective> collectives_;
};

int sniff_kineto(std::string_view head) {
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  if (head.find_first_not_of(" \t\r\n") == std::string_view::npos || head[head.find_first_not_of(" \t\r\n")] != '{')
    return 0;
  return has("\"traceEvents\"") || (has("\"schemaVersion\"") && has("\"deviceProperties\"")) ? 90 : 0;
}

Trace read_devices(const Input& input, std::optional<std::int64_t> only) {
  const Kineto file = parse_kineto(input);
  try {
    return to_trace(file, only);
  } catch (const InputError& error) {
    throw error.at(input.path());
  }
}

const RegisterImporter kKineto{
    {"kineto", "traces of torch.profiler (Kineto)", {".json"}, sniff_kineto, read_kineto, read_kineto_device}};

}  // namespace

Trace to_trace(const Kineto& kineto, std::optional<std::int64_t> only) { return KinetoImport{kineto, only}.run(); }

KinetoRank to_rank(const Kineto& kineto, const KinetoOperands* operands) {
  return KinetoImport{kineto, std::nullopt, operands}.run_as_rank();
}

Trace read_kineto(const Input& input) { return read_devices(input, std::nullopt); }

Trace read_kineto_device(const Input& input, std::size_t device) {
  return read_devices(input, static_cast<std::int64_t>(device));
}

}  // namespace tidepool
