#include "policies/planning/remat/lineage.hpp"

#include "policies/planning/remat/saved.hpp"

namespace tidepool {

Lineage::Lineage(const Trace& trace)
    : trace_{trace},
      end_{ends_of_versions(trace)},
      release_(trace.versions().size()),
      due_(trace.versions().size()),
      asked_(trace.ops().size()) {}

void Lineage::drop(VersionId v, std::uint32_t release, std::uint32_t due) {
  release_[v.index()] = release;
  due_[v.index()] = due;
}

bool Lineage::available(VersionId v, std::uint32_t op) const {
  const bool dropped = release_[v.index()] < op && op < due_[v.index()];
  return op < end_[v.index()] && !dropped;
}

std::optional<Nanos> Lineage::time(VersionId v, std::uint32_t op) {
  ++question_;
  Nanos sum;
  wanted_.assign(1, v);
  while (!wanted_.empty()) {
    const OpId producer = trace_.version(wanted_.back()).producer;
    wanted_.pop_back();
    if (!producer.valid() || trace_.op(producer).kind == OpKind::kSource) return std::nullopt;
    if (asked_[producer.index()] == question_) continue;
    asked_[producer.index()] = question_;
    sum += trace_.op(producer).duration;
    for (const Use& use : trace_.uses(producer)) {
      if (!use.in.valid()) continue;
      const VersionId root = trace_.root(use.in);
      if (!available(root, op)) wanted_.push_back(root);
    }
  }
  return sum;
}

}  // namespace tidepool
