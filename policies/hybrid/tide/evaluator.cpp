#include "policies/hybrid/tide/evaluator.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tidepool {
namespace {

constexpr std::uint32_t kNone = EvaluatedCopy::kNone;

/// Adds bytes to the slots of the positions [first, last) of a circle, as changes from one slot to the next.
void add_during(std::vector<Bytes>& change, std::uint32_t first, std::uint32_t last, Bytes bytes) {
  const auto slots = static_cast<std::uint32_t>(change.size() - 1);
  if (first >= last) return;
  const std::uint32_t begin = last - first >= slots ? 0 : first % slots,
                      end = last - first >= slots ? slots : begin + (last - first);
  change[begin] += bytes;
  change[std::min(end, slots)] -= bytes;
  if (end <= slots) return;
  change[0] += bytes;
  change[end - slots] -= bytes;
}

/// Adds the sums of changes to bytes by slot.
void add_up(const std::vector<Bytes>& change, std::vector<Bytes>& bytes) {
  Bytes sum;
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] += sum += change[k];
}

}  // namespace

Evaluator::Evaluator(const StepModel& model)
    : model_{model},
      recomputation_{model.trace, model.gaps, model.dead},
      capacity_{model.spec.capacity},
      first_out_(model.trace.versions().size(), kNone),
      lanes_{model.machine} {}

const Evaluation& Evaluator::evaluate(const Treatments& treatments, Nanos longest) {
  ++evaluations_;
  result_.period = Evaluation::kImpossible;
  result_.most_over = Bytes{};
  result_.overs = 0;
  result_.copies.clear();
  if (!recomputation_.follow(treatments)) return result_;
  if (model_.circle.period() + recomputation_.total() > longest) return result_;
  list_copies(treatments);
  order_copies();
  find_loads(treatments);
  simulate(longest);
  return result_;
}

/// Lists the copied intervals. The first one of a content swaps it out, unless the content begins on the host.
void Evaluator::list_copies(const Treatments& treatments) {
  constexpr std::uint32_t kHost = kNone - 1;
  for (std::uint32_t i = 0; i < treatments.size(); ++i)
    if (treatments[i] == How::kCopied && model_.gaps[i].crosses) first_out_[model_.gaps[i].in.index()] = kHost;
  for (const std::uint32_t i : model_.by_release) {
    const Gap& gap = model_.gaps[i];
    if (treatments[i] != How::kCopied || recomputation_.due(i) <= gap.release + 1) continue;
    EvaluatedCopy copy{.gap = i, .release = gap.release, .due = recomputation_.due(i), .out_from = gap.release + 1};
    if (gap.made != Gap::kUnchanged) {
      std::uint32_t& first = first_out_[gap.out.index()];
      if (first == kNone) {
        copy.swaps_out = true;
        first = static_cast<std::uint32_t>(result_.copies.size());
        copy.ahead = gap.renewed.valid() && gap.renewed_by + 1 < model_.ops();
        if (copy.ahead)
          copy.out_from = gap.renewed_by + 1;
        else if (gap.made < gap.release)
          copy.out_from = gap.made + 1;
      }
      if (first != kHost) copy.source = first;
    }
    result_.copies.push_back(copy);
  }
  for (std::uint32_t i = 0; i < treatments.size(); ++i)
    if (treatments[i] == How::kCopied)
      first_out_[model_.gaps[i].in.index()] = first_out_[model_.gaps[i].out.index()] = kNone;
}

/// By slot: live bytes without absent content. `with_leaving_` adds content that is still leaving.
void Evaluator::find_loads(const Treatments& treatments) {
  const std::size_t slots = model_.ops();
  change_.assign(slots + 1, Bytes{});
  for (const EvaluatedCopy& copy : result_.copies)
    add_during(change_, copy.release + 1, copy.due, -model_.gaps[copy.gap].size);
  for (std::uint32_t i = 0; i < treatments.size(); ++i)
    if (treatments[i] == How::kDropped)
      add_during(change_, model_.gaps[i].release + 1, recomputation_.due(i), -model_.gaps[i].size);
  load_ = model_.circle.load;
  for (std::size_t k = 0; k < slots; ++k) load_[k] += recomputation_.held()[k];
  add_up(change_, load_);
  with_leaving_ = load_;
  add_undrained();
  room_.reset(with_leaving_);
}

/// Adds the bytes of released content whose swap-out has not ended, in a run whose ops wait for swap-outs when memory
/// is full, but for no swap-in. The second of two iterations counts, so that swap-outs left from the first one delay
/// its own.
void Evaluator::add_undrained() {
  const std::vector<EvaluatedCopy>& copies = result_.copies;
  const auto slots = static_cast<std::uint32_t>(model_.ops());
  if (by_out_.empty()) return;
  const auto slot_of_release = [&](std::uint32_t i) { return (copies[i].release + 1) % slots; };
  const auto slot_of_out = [&](std::uint32_t i) { return copies[i].out_from % slots; };
  // What follows the last op comes first on the circle.
  const auto from_first_slot = [](std::vector<std::uint32_t>& order, const auto& slot_of) {
    std::rotate(order.begin(),
                std::find_if(order.begin(), order.end(), [&](std::uint32_t i) { return slot_of(i) == 0; }),
                order.end());
  };
  released_.clear();
  for (std::uint32_t i = 0; i < copies.size(); ++i)
    if (copies[i].swaps_out) released_.push_back(i);
  leaves_ = by_out_;
  from_first_slot(released_, slot_of_release);
  from_first_slot(leaves_, slot_of_out);
  const auto later = [&](std::uint32_t a, std::uint32_t b) {  // copies are in the order of releases
    return copies[a].ahead != copies[b].ahead ? copies[a].ahead : a > b;
  };
  queue_.clear();
  out_.assign(copies.size(), Out::kDone);
  std::uint32_t current = kNone;
  Nanos time, lane;  // the lane is free, or its copy ends
  Bytes leaving;
  const auto begin = [&] {
    if (current != kNone || queue_.empty()) return current != kNone;
    std::pop_heap(queue_.begin(), queue_.end(), later);
    current = queue_.back();
    queue_.pop_back();
    lane += model_.out[copies[current].gap];
    return true;
  };
  const auto end = [&] {
    if (out_[current] == Out::kLeaving) leaving -= model_.gaps[copies[current].gap].size;
    out_[current] = Out::kDone;
    current = kNone;
  };
  for (int turn = 0; turn < 2; ++turn) {
    std::size_t next_out = 0, next_release = 0;
    for (std::uint32_t k = 0; k < slots; ++k) {
      while (begin() && lane <= time) end();
      if (current == kNone) lane = std::max(lane, time);
      for (; next_out < leaves_.size() && slot_of_out(leaves_[next_out]) == k; ++next_out) {
        if (out_[leaves_[next_out]] != Out::kDone) continue;
        out_[leaves_[next_out]] = Out::kQueued;
        queue_.push_back(leaves_[next_out]);
        std::push_heap(queue_.begin(), queue_.end(), later);
      }
      for (; next_release < released_.size() && slot_of_release(released_[next_release]) == k; ++next_release) {
        if (out_[released_[next_release]] != Out::kQueued) continue;
        out_[released_[next_release]] = Out::kLeaving;
        leaving += model_.gaps[copies[released_[next_release]].gap].size;
      }
      const bool drains = turn == 1 && k == 0;
      while (leaving > Bytes{} && (drains || load_[k] + leaving > capacity_) && begin())
        time = std::max(time, lane), end();
      if (turn == 1) with_leaving_[k] += leaving;
      time += recomputation_.time()[k] + (model_.circle.start[k + 1] - model_.circle.start[k]);
    }
  }
}

void Evaluator::order_copies() {
  const std::vector<EvaluatedCopy>& copies = result_.copies;
  const auto slots = static_cast<std::uint32_t>(model_.ops());
  by_due_.resize(copies.size());
  std::iota(by_due_.begin(), by_due_.end(), 0U);
  std::sort(by_due_.begin(), by_due_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t due_a = copies[a].due % slots, due_b = copies[b].due % slots;
    return due_a != due_b ? due_a < due_b : a < b;
  });
  by_out_.clear();
  live_.assign(copies.size(), {});
  for (std::uint32_t i = 0; i < copies.size(); ++i) {
    if (copies[i].swaps_out) by_out_.push_back(i);
    if (copies[i].source != kNone) live_[i].next_served = std::exchange(live_[copies[i].source].serves, i);
  }
  std::sort(by_out_.begin(), by_out_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return copies[a].out_from != copies[b].out_from ? copies[a].out_from < copies[b].out_from : a < b;
  });
}

/// Issues swap-ins no earlier than schedule_late() does for the clock and the memory of the last evaluation.
void Evaluator::issue_late(const std::vector<Gap>& gaps, std::vector<PlannedGap>& planned) const {
  StepCircle circle = model_.circle;
  circle.start = result_.start;
  circle.load = load_;
  std::vector<Bytes> change(model_.ops() + 1);
  std::vector<std::uint32_t> selected, issue(gaps.size());
  for (const PlannedGap& each : planned) selected.push_back(each.gap);
  for (const std::uint32_t i : selected) add_during(change, gaps[i].release + 1, gaps[i].due, gaps[i].size);
  add_up(change, circle.load);
  for (const PlannedGap& each : schedule_late(circle, gaps, selected, model_.machine, capacity_))
    issue[each.gap] = each.issue;
  for (PlannedGap& each : planned) each.issue = std::max(each.issue, issue[each.gap]);
}

GapDraft Evaluator::draft(const Treatments& treatments, SwapIns swap_ins) const {
  std::vector<Gap> gaps = model_.gaps;
  std::vector<EvaluatedCopy> copies = result_.copies;
  std::stable_sort(copies.begin(), copies.end(),
                   [](const EvaluatedCopy& a, const EvaluatedCopy& b) { return a.out_begins < b.out_begins; });
  GapPlan plan;
  for (const EvaluatedCopy& copy : copies) {
    if (copy.issue == kNone) continue;
    gaps[copy.gap].due = copy.due;
    const bool early = copy.swaps_out && copy.out_op != kNone && copy.out_op > 0 && copy.out_op < model_.ops() &&
                       (copy.out_op <= copy.release || copy.ahead);
    plan.copied.push_back({copy.gap, std::clamp(copy.issue, copy.release + 1, copy.due), early ? copy.out_op : 0});
  }
  if (swap_ins == SwapIns::kLate) issue_late(gaps, plan.copied);
  for (const std::uint32_t i : model_.by_release)
    if (treatments[i] == How::kDropped && recomputation_.due(i) > gaps[i].release + 1) plan.dropped.push_back(i);
  return draft_of(gaps, plan, model_.ops(), model_.dead_drops);
}

std::vector<Bytes> Evaluator::recomputation_bytes(const Treatments& treatments) const {
  std::vector<Bytes> change(model_.ops() + 1), early = recomputation_.held();
  for (std::uint32_t i = 0; i < treatments.size(); ++i)
    if (treatments[i] == How::kDropped)
      add_during(change, recomputation_.due(i), model_.gaps[i].due, model_.gaps[i].size);
  add_up(change, early);
  return early;
}

std::vector<Bytes> Evaluator::early_bytes(const Treatments& treatments) const {
  std::vector<Bytes> change(model_.ops() + 1), early = recomputation_bytes(treatments);
  for (const EvaluatedCopy& copy : result_.copies)
    if (copy.issue != kNone) add_during(change, copy.issue, model_.gaps[copy.gap].due, model_.gaps[copy.gap].size);
  add_up(change, early);
  return early;
}

}  // namespace tidepool
