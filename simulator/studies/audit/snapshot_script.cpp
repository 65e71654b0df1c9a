#include "simulator/studies/audit/snapshot_script.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tidepool {
namespace {

std::string_view name_of(SnapshotAction action) {
  switch (action) {
    case SnapshotAction::kAlloc:
      return "alloc";
    case SnapshotAction::kFreeRequested:
      return "free_requested";
    case SnapshotAction::kFreeCompleted:
      return "free_completed";
    case SnapshotAction::kSegmentAlloc:
      return "segment_alloc";
    case SnapshotAction::kSegmentFree:
      return "segment_free";
    case SnapshotAction::kSegmentMap:
      return "segment_map";
    case SnapshotAction::kSegmentUnmap:
      return "segment_unmap";
    case SnapshotAction::kSnapshot:
      return "snapshot";
    case SnapshotAction::kOom:
      return "oom";
    case SnapshotAction::kOther:
      return "event";
  }
  return "event";
}

}  // namespace

std::string to_text(const SnapshotEvent& event) {
  if (event.action == SnapshotAction::kOom) return fmt::format("oom for {} B", event.size.count());
  return fmt::format("{} of {} B at {:#x}", name_of(event.action), event.size.count(), event.address);
}

std::size_t SnapshotScript::position() {
  const auto is_mark = [](const SnapshotEvent& event) {
    return event.action == SnapshotAction::kSnapshot || event.action == SnapshotAction::kOther;
  };
  while (position_ < events_->size() && is_mark((*events_)[position_])) ++position_;
  return position_;
}

/// The next event about memory, if it is an `action`; else null.
const SnapshotEvent* SnapshotScript::next(SnapshotAction action) {
  return position() < events_->size() && (*events_)[position_].action == action ? &(*events_)[position_] : nullptr;
}

std::string SnapshotScript::shown() {
  return position() < events_->size() ? to_text((*events_)[position_]) : "its end";
}

/// Whether the log shows a retry or a failure at this request; carries out the frees that the retry waited for.
bool SnapshotScript::refused() {
  while (const SnapshotEvent* event = next(SnapshotAction::kFreeCompleted)) {
    if (!model_->free(Bytes{event->address})) throw Mismatch{to_text(*event) + ", which is not in use"};
    ++position_;
  }
  return next(SnapshotAction::kSegmentFree) || next(SnapshotAction::kSegmentUnmap) || next(SnapshotAction::kOom);
}

std::optional<Bytes> SnapshotScript::reserve(Bytes size) {
  const SnapshotEvent* event = next(SnapshotAction::kSegmentAlloc);
  if (!event && refused()) return {};
  if (!event || event->size != size)
    throw Mismatch{fmt::format("the trace shows {}; the model asks for a segment of {} B", shown(), size.count())};
  const Bytes address{event->address};
  take(address, size);
  return address;
}

bool SnapshotScript::map(Bytes address, Bytes size, Bytes /*page*/) {
  const SnapshotEvent* event = next(SnapshotAction::kSegmentMap);
  if (!event && refused()) return false;
  if (!event || event->size != size || event->address != address.count())
    throw Mismatch{
        fmt::format("the trace shows {}; the model maps {} B at {:#x}", shown(), size.count(), address.count())};
  take(address, size);
  return true;
}

/// Consumes the event that gives memory to the model.
void SnapshotScript::take(Bytes address, Bytes size) {
  if (held_.add({address, size}, {}) == held_.end())
    throw Mismatch{to_text((*events_)[position_]) + ", part of which is mapped already"};
  ++audit_->segment_matched;
  ++position_;
}

void SnapshotScript::release(Bytes address, Bytes size) {
  const SnapshotEvent* event = next(SnapshotAction::kSegmentFree);
  if (!event) event = next(SnapshotAction::kSegmentUnmap);
  if (!event || event->address != address.count() || event->size != size)
    throw Mismatch{
        fmt::format("the trace shows {}; the model gives {} B at {:#x} back", shown(), size.count(), address.count())};
  held_.take({address, size});
  ++audit_->releases_matched;
  ++position_;
}

/// The address of the key's next range that begins at this position of the log or later.
Bytes SnapshotScript::reserve_addresses(Bytes /*size*/) {
  auto& later = later_[key_];
  while (!later.empty() && *later.front()->begun < position_) later.pop_front();
  if (!later.empty()) {
    const Bytes address = later.front()->place.offset;
    later.pop_front();
    return address;
  }
  // The log maps no pages in this range, so any free addresses serve.
  if (unseen_ranges_ == 1'000)
    throw Mismatch{"the model reserves more than 1,000 ranges of which the trace maps nothing"};
  return Bytes{(std::int64_t{1} << 61) + (unseen_ranges_++ << 48)};
}

}  // namespace tidepool
