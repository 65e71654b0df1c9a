#include "traces/step/dependencies.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

/// The last op that wrote a buffer, and the ops that have read the buffer since.
struct LastUses {
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t writer = kNone;
  std::vector<std::uint32_t> readers;
};

class Collector {
 public:
  explicit Collector(const Trace& trace) : trace_{trace}, uses_(trace.buffers().size()) {
    found_.before.resize(trace.ops().size());
    found_.after.resize(trace.ops().size());
  }

  Dependencies collect() {
    for (std::uint32_t op = 0; op < trace_.ops().size(); ++op) {
      reasons_.clear();
      add_uses(op);
      const Op& spec = trace_.op(OpId{op});
      if (spec.random) chain(last_random_, op, Reason::kRandom);
      if (spec.kind == OpKind::kCollective) chain(last_collective_, op, Reason::kCollective);
      if (wall_ != LastUses::kNone) add(wall_, op, wall_reason_);
      if (const auto reason = wall(OpId{op})) {
        for (std::uint32_t other = wall_ == LastUses::kNone ? 0 : wall_ + 1; other < op; ++other)
          add(other, op, *reason);
        wall_ = op;
        wall_reason_ = *reason;
      }
      for (const auto& [before, reason] : reasons_) {
        found_.before[op].push_back(before);
        found_.after[before].push_back(op);
        ++found_.pairs[static_cast<std::size_t>(reason)];
      }
    }
    return std::move(found_);
  }

 private:
  /// The reason why no op may move past this one; none if ops may.
  std::optional<Reason> wall(OpId op) const {
    const OpKind kind = trace_.op(op).kind;
    if (kind == OpKind::kHostWait || kind == OpKind::kSource) return Reason::kHost;
    const std::span uses = trace_.uses(op);
    const bool known = !uses.empty() && std::all_of(uses.begin(), uses.end(), [](const Use& use) {
      return use.evidence < Evidence::kParameter && use.access != Access::kTouch;
    });
    if (!known) return Reason::kUnknown;
    return std::nullopt;
  }

  void add_uses(std::uint32_t op) {
    for (const Use& use : trace_.uses(OpId{op})) {
      const VersionId named = use.in.valid() ? use.in : use.out;
      LastUses& last = uses_[trace_.version(named).buffer.index()];
      if (use.in.valid() && trace_.version(use.in).producer.valid())
        add(trace_.version(use.in).producer.value(), op, Reason::kData);
      if (use.in.valid() && last.writer != LastUses::kNone) add(last.writer, op, Reason::kData);
      if (!writes(use)) continue;
      if (last.writer != LastUses::kNone) add(last.writer, op, Reason::kOverwrite);
      for (const std::uint32_t reader : last.readers) add(reader, op, Reason::kOverwrite);
    }
    for (const Use& use : trace_.uses(OpId{op})) {
      LastUses& last = uses_[trace_.version(use.in.valid() ? use.in : use.out).buffer.index()];
      if (writes(use))
        last = {op, {}};
      else if (last.writer != op)
        last.readers.push_back(op);
    }
  }
  static bool writes(const Use& use) { return use.out.valid() && use.access != Access::kView; }

  void chain(std::uint32_t& last, std::uint32_t op, Reason reason) {
    if (last != LastUses::kNone) add(last, op, reason);
    last = op;
  }
  void add(std::uint32_t before, std::uint32_t op, Reason reason) {
    if (before != op) reasons_.try_emplace(before, reason);
  }

  const Trace& trace_;
  std::vector<LastUses> uses_;  // by buffer
  Dependencies found_;
  std::map<std::uint32_t, Reason> reasons_;  // of the present op, by the op that must come before it
  std::uint32_t last_random_ = LastUses::kNone, last_collective_ = LastUses::kNone, wall_ = LastUses::kNone;
  Reason wall_reason_ = Reason::kHost;
};

}  // namespace

std::string_view to_text(Reason reason) {
  switch (reason) {
    case Reason::kData:
      return "data";
    case Reason::kOverwrite:
      return "overwrite";
    case Reason::kRandom:
      return "random";
    case Reason::kHost:
      return "host";
    case Reason::kCollective:
      return "collective";
    case Reason::kUnknown:
      return "unknown";
  }
  return "unknown";
}

Dependencies dependencies_of(const Trace& trace) {
  if (const std::size_t streams = trace.data().streams.size(); streams > 1)
    refuse("{} streams; expected one: the recording lacks some dependencies between streams", streams);
  return Collector{trace}.collect();
}

}  // namespace tidepool
