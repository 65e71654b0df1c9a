#include "policies/hybrid/tide/recomputation.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tidepool {

Recomputation::Recomputation(const Trace& trace, const std::vector<Gap>& gaps, const std::vector<DeadContent>& dead)
    : trace_{trace},
      gaps_{gaps},
      inputs_(trace.ops().size()),
      made_(trace.ops().size()),
      is_source_(trace.ops().size()),
      versions_(trace.versions().size()),
      by_due_(gaps.size()),
      due_(gaps.size()),
      ended_(gaps.size()),
      time_(trace.ops().size()),
      held_(trace.ops().size()),
      is_temporary_(trace.versions().size()),
      waits_(trace.ops().size()) {
  for (std::size_t op = 0; op < trace.ops().size(); ++op) {
    std::vector<std::uint32_t>& inputs = inputs_[op];
    for (const Use& use : trace.uses(OpId{op})) {
      if (!use.in.valid()) continue;
      const std::uint32_t root = trace.root(use.in).value();
      if (std::find(inputs.begin(), inputs.end(), root) == inputs.end()) inputs.push_back(root);
    }
    for (const VersionId version : trace.made(OpId{op})) made_[op].push_back(version.value());
    is_source_[op] = trace.op(OpId{op}).kind == OpKind::kSource;
  }
  find_ends(dead);
  for (std::uint32_t i = 0; i < gaps.size(); ++i) {
    versions_[gaps[i].out.index()].gaps.push_back(i);
    if (gaps[i].crosses && gaps[i].in != gaps[i].out) versions_[gaps[i].in.index()].gaps.push_back(i);
  }
  const auto ops = static_cast<std::uint32_t>(trace.ops().size());
  std::iota(by_due_.begin(), by_due_.end(), 0U);
  std::stable_sort(by_due_.begin(), by_due_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return gaps[a].due % ops < gaps[b].due % ops; });
}

/// Sets the ops between which each version is on the device if nothing is dropped.
void Recomputation::find_ends(const std::vector<DeadContent>& dead) {
  const auto never = static_cast<std::uint32_t>(trace_.ops().size() + 1);
  std::vector<std::uint32_t> freed(trace_.buffers().size(), never), allocated(trace_.buffers().size());
  std::uint32_t op = 0;
  for (const Event& event : trace_.events()) {
    if (event.kind == EventKind::kRun) op = event.id + 1;
    if (event.kind == EventKind::kFree) freed[event.id] = op;
    if (event.kind == EventKind::kAlloc) allocated[event.id] = op;
  }
  for (std::size_t v = 0; v < versions_.size(); ++v) {
    const Version& version = trace_.versions()[v];
    VersionLife& life = versions_[v];
    life.size = trace_.size(VersionId{v});
    if (version.producer.valid()) life.producer = version.producer.value();
    life.begin = version.producer.valid() ? life.producer + 1 : allocated[version.buffer.index()];
    life.end = freed[version.buffer.index()];
  }
  for (std::size_t v = 0; v < versions_.size(); ++v) {
    const Version& version = trace_.versions()[v];
    if (version.kind == VersionKind::kView || !version.parent.valid() || !version.producer.valid()) continue;
    VersionLife& parent = versions_[version.parent.index()];
    parent.end = std::min(parent.end, version.producer.value() + 1);
    if (trace_.version(version.parent).buffer == version.buffer) versions_[v].replaces = version.parent.value();
  }
  for (const DeadContent& each : dead) {
    std::uint32_t& end = versions_[each.version.index()].end;
    end = std::min(end, each.last_use + 1);
  }
}

bool Recomputation::follow(const Treatments& treatments) {
  treatments_ = &treatments;
  for (const std::uint32_t op : touched_) time_[op] = Nanos{}, held_[op] = Bytes{};
  touched_.clear();
  possible_ = true;
  total_ = Nanos{};
  for (std::size_t i = 0; i < gaps_.size(); ++i) due_[i] = gaps_[i].due, ended_[i] = 0;
  const auto ops = static_cast<std::uint32_t>(trace_.ops().size());
  for (std::size_t first = 0, last = 0; first < by_due_.size(); first = last) {
    op_ = gaps_[by_due_[first]].due % ops;
    pending_ = Bytes{};
    for (; last < by_due_.size() && gaps_[by_due_[last]].due % ops == op_; ++last)
      if (const std::uint32_t i = by_due_[last]; treatments[i] == How::kDropped && ended_[i] == 0)
        pending_ += gaps_[i].size;
    for (std::size_t at = first; at < last; ++at) {
      const std::uint32_t i = by_due_[at];
      if (treatments[i] == How::kKept || ended_[i] != 0) continue;
      if (treatments[i] == How::kCopied)
        ended_[i] = 1;
      else
        bring_back((gaps_[i].crosses ? gaps_[i].in : gaps_[i].out).value());
      if (!possible_) return false;
    }
    drop_temporaries(0, kNone);
  }
  return true;
}

/// Whether the content of a version is idle in an interval at the current op.
bool Recomputation::is_in(std::uint32_t gap, std::uint32_t version) const {
  const Gap& each = gaps_[gap];
  if (!each.crosses) return op_ > each.release && op_ <= each.due;
  const auto ops = static_cast<std::uint32_t>(trace_.ops().size());
  return (each.out.value() == version && op_ > each.release) || (each.in.value() == version && op_ + ops <= each.due);
}

Recomputation::Where Recomputation::where(std::uint32_t version) const {
  if (is_temporary_[version] != 0) return {At::kDevice};
  const VersionLife& life = versions_[version];
  if (op_ < life.begin || op_ >= life.end) return {};
  for (const std::uint32_t gap : life.gaps) {
    if (!is_in(gap, version)) continue;
    const How treatment = (*treatments_)[gap];
    if (treatment == How::kKept || ended_[gap] != 0) return {At::kDevice};
    return {treatment == How::kCopied ? At::kHost : At::kDropped, gap};
  }
  return {At::kDevice};
}

void Recomputation::end_interval(std::uint32_t gap) {
  ended_[gap] = 1;
  const auto ops = static_cast<std::uint32_t>(trace_.ops().size());
  due_[gap] = op_ + (gaps_[gap].due >= ops ? ops : 0);
}

bool Recomputation::is_there(std::uint32_t version) {
  const Where found = where(version);
  if (found.at == At::kHost) end_interval(found.gap);
  return found.at == At::kDevice || found.at == At::kHost;
}

void Recomputation::enter(std::uint32_t version) {
  const std::uint32_t producer = versions_[version].producer;
  // If the op already waits for inputs, it would wait for its own output and never run.
  if (producer == kNone || is_source_[producer] || waits_[producer] != 0) return void(possible_ = false);
  waits_[producer] = 1;
  frames_.push_back({producer, 0, temporaries_.size()});
}

void Recomputation::bring_back(std::uint32_t version) {
  if (is_there(version)) return;
  enter(version);
  while (!frames_.empty() && possible_) {
    Frame& frame = frames_.back();
    const std::vector<std::uint32_t>& inputs = inputs_[frame.op];
    while (frame.next_input < inputs.size() && is_there(inputs[frame.next_input])) ++frame.next_input;
    if (frame.next_input < inputs.size()) {
      enter(inputs[frame.next_input]);
    } else {
      run_again(frame.op, frame.first_temporary);
      frames_.pop_back();
    }
  }
  if (!possible_) give_up();
}

void Recomputation::give_up() {
  for (const Frame& frame : frames_) waits_[frame.op] = 0;
  frames_.clear();
  drop_temporaries(0, kNone);
}

void Recomputation::run_again(std::uint32_t op, std::size_t first_temporary) {
  touched_.push_back(op_);
  const Nanos duration = trace_.op(OpId{std::size_t{op}}).duration;
  time_[op_] += duration;
  total_ += duration;
  for (const std::uint32_t made : made_[op]) {
    const Where found = where(made);
    if (found.at == At::kDevice || found.at == At::kHost) continue;
    if (const std::uint32_t replaced = versions_[made].replaces; replaced != kNone && is_temporary_[replaced] != 0)
      end_temporary(replaced);
    if (found.at == At::kNowhere) {
      add_temporary(made);
      continue;
    }
    if (gaps_[found.gap].due % trace_.ops().size() == op_) pending_ -= gaps_[found.gap].size;
    end_interval(found.gap);
  }
  held_[op_] = std::max(held_[op_], temporary_bytes_ - pending_);
  waits_[op] = 0;
  drop_temporaries(first_temporary, op);
}

void Recomputation::add_temporary(std::uint32_t version) {
  temporaries_.push_back(version);
  is_temporary_[version] = 1;
  temporary_bytes_ += versions_[version].size;
}

void Recomputation::end_temporary(std::uint32_t version) {
  is_temporary_[version] = 0;
  temporary_bytes_ -= versions_[version].size;
}

/// Drops the temporary versions from `first` on, except those that `made_by` made.
void Recomputation::drop_temporaries(std::size_t first, std::uint32_t made_by) {
  std::size_t kept = first;
  for (std::size_t i = first; i < temporaries_.size(); ++i) {
    const std::uint32_t version = temporaries_[i];
    if (is_temporary_[version] == 0) continue;
    if (made_by != kNone && versions_[version].producer == made_by)
      temporaries_[kept++] = version;
    else
      end_temporary(version);
  }
  temporaries_.resize(kept);
}

}  // namespace tidepool
