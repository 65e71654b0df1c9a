#include "policies/hybrid/tide/later_frees.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tidepool {
namespace {

constexpr std::int64_t kSmall = 8;  // all small inputs take at most 1/8 of the large content
constexpr std::size_t kSoon = 10;   // idle for long: a tenth of the step's ops without a use

class LaterFrees {
 public:
  explicit LaterFrees(const Trace& trace)
      : trace_{trace}, last_(trace.buffers().size()), freed_(trace.buffers().size(), kNever), until_(freed_) {
    for (std::size_t i = 0; i < trace.versions().size(); ++i)
      if (trace.versions()[i].kind != VersionKind::kView) last_[trace.versions()[i].buffer.index()] = VersionId{i};
    for (std::uint32_t at = 0; at < trace.events().size(); ++at)
      if (trace.events()[at].kind == EventKind::kFree) freed_[trace.events()[at].id] = at;
  }

  std::optional<Trace> find(Bytes least) {
    for (std::size_t i = 0; i < trace_.versions().size(); ++i)
      if (const Version& version = trace_.versions()[i]; version.producer.valid() && trace_.size(VersionId{i}) >= least)
        look_at(VersionId{i});
    if (std::all_of(until_.begin(), until_.end(), [](std::uint32_t at) { return at == kNever; })) return std::nullopt;
    return moved();
  }

 private:
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};

  /// The op that ends the longest time in which no op uses a version; none if the version has no long idle time.
  OpId due_after_idle(VersionId v) const {
    std::size_t used = trace_.version(v).producer.index(), longest = trace_.ops().size() / kSoon;
    OpId due;
    for (const OpId reader : trace_.readers(v)) {
      if (reader.index() - used > longest) longest = reader.index() - used, due = reader;
      used = reader.index();
    }
    return due;
  }

  /// Keeps the inputs of large content until that content is read after its idle time, if these inputs are small.
  void look_at(VersionId large) {
    const OpId producer = trace_.version(large).producer;
    const OpId due = due_after_idle(large);
    if (!due.valid() || trace_.op(producer).kind == OpKind::kSource) return;
    const std::uint32_t read = trace_.position(due);
    std::vector<BufferId> inputs;
    Bytes bytes;
    for (const Use& use : trace_.uses(producer)) {
      if (!use.in.valid()) continue;
      const VersionId root = trace_.root(use.in);
      const BufferId buffer = trace_.version(root).buffer;
      if (std::find(inputs.begin(), inputs.end(), buffer) != inputs.end() || freed_[buffer.index()] > read) continue;
      if (last_[buffer.index()] != root) return;  // an input that is overwritten cannot stay
      inputs.push_back(buffer);
      bytes += trace_.buffer(buffer).size;
      if (bytes * kSmall > trace_.size(large)) return;
    }
    for (const BufferId buffer : inputs) {
      std::uint32_t& until = until_[buffer.index()];
      until = until == kNever ? read : std::max(until, read);
    }
  }

  Trace moved() const {
    TraceData data = trace_.data();
    std::vector<std::vector<Event>> after(data.events.size());
    for (std::uint32_t b = 0; b < until_.size(); ++b)
      if (until_[b] != kNever) after[until_[b]].push_back({EventKind::kFree, b});
    std::vector<Event> steps;
    std::vector<std::uint32_t> place;  // by step: the number of new steps before it
    for (std::size_t at = 0; at < data.events.size(); ++at) {
      const Event& event = data.events[at];
      place.push_back(static_cast<std::uint32_t>(steps.size()));
      if (event.kind != EventKind::kFree || until_[event.id] == kNever) steps.push_back(event);
      steps.insert(steps.end(), after[at].begin(), after[at].end());
    }
    place.push_back(static_cast<std::uint32_t>(steps.size()));
    for (Mark& mark : data.marks) mark.event = place[mark.event];
    data.events = std::move(steps);
    return Trace{std::move(data)};
  }

  const Trace& trace_;
  std::vector<VersionId> last_;               // by buffer: its last version
  std::vector<std::uint32_t> freed_, until_;  // by buffer: the step that frees it; the step after which it ends instead
};

}  // namespace

std::optional<Trace> with_later_frees(const Trace& trace, Bytes least) { return LaterFrees{trace}.find(least); }

}  // namespace tidepool
