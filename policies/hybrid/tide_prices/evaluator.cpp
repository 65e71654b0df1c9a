#include "policies/hybrid/tide_prices/evaluator.hpp"

#include <algorithm>
#include <numeric>

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

const Evaluation& Evaluator::evaluate(const Treatments& treatments) {
  ++evaluations_;
  result_.period = Evaluation::kImpossible;
  result_.most_over = Bytes{};
  result_.overs = 0;
  result_.copies.clear();
  if (!recomputation_.follow(treatments)) return result_;
  list_copies(treatments);
  find_loads(treatments);
  order_copies();
  simulate();
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
        if (gap.made < gap.release) copy.out_from = gap.made + 1;
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

/// Adds the bytes of released content whose swap-out has not ended, by the clock of a run that waits for no copy. The
/// lane goes around the circle twice, so that swap-outs left from one iteration delay those of the next one.
void Evaluator::add_undrained() {
  std::vector<std::uint32_t> outs;
  for (std::uint32_t i = 0; i < result_.copies.size(); ++i)
    if (result_.copies[i].swaps_out) outs.push_back(i);
  if (outs.empty()) return;
  const std::size_t slots = model_.ops();
  std::vector<Nanos> clock = model_.circle.start;
  Nanos recomputed;
  for (std::size_t k = 0; k < slots; ++k) clock[k] += recomputed += recomputation_.time()[k];
  const Nanos period = clock[slots] += recomputed;
  const auto at = [&](std::size_t position) {
    return clock[position % slots] + period * static_cast<std::int64_t>(position / slots);
  };
  const std::vector<EvaluatedCopy>& copies = result_.copies;
  std::sort(outs.begin(), outs.end(), [&](std::uint32_t a, std::uint32_t b) {
    return copies[a].out_from != copies[b].out_from ? copies[a].out_from < copies[b].out_from : a < b;
  });
  change_.assign(slots + 1, Bytes{});
  const auto later = [](std::uint32_t a, std::uint32_t b) { return a > b; };  // copies are in the order of releases
  std::vector<std::uint32_t> ready;
  Nanos lane;
  for (int turn = 0; turn < 2; ++turn) {
    std::size_t next = 0;
    while (next < outs.size() || !ready.empty()) {
      if (ready.empty()) lane = std::max(lane, at(copies[outs[next]].out_from));
      for (; next < outs.size() && at(copies[outs[next]].out_from) <= lane; ++next) {
        ready.push_back(outs[next]);
        std::push_heap(ready.begin(), ready.end(), later);
      }
      std::pop_heap(ready.begin(), ready.end(), later);
      const EvaluatedCopy& copy = copies[ready.back()];
      ready.pop_back();
      lane += model_.out[copy.gap];
      std::uint32_t gone = copy.release + 1;
      while (turn == 1 && gone < copy.due && at(gone) < lane) ++gone;
      add_during(change_, copy.release + 1, gone, model_.gaps[copy.gap].size);
    }
    lane = std::max(Nanos{}, lane - period);
  }
  add_up(change_, with_leaving_);
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
    if (copies[i].source != kNone) live_[copies[i].source].serves.push_back(i);
  }
  std::sort(by_out_.begin(), by_out_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return copies[a].out_from != copies[b].out_from ? copies[a].out_from < copies[b].out_from : a < b;
  });
}

GapDraft Evaluator::draft(const Treatments& treatments) const {
  std::vector<Gap> gaps = model_.gaps;
  std::vector<EvaluatedCopy> copies = result_.copies;
  std::stable_sort(copies.begin(), copies.end(),
                   [](const EvaluatedCopy& a, const EvaluatedCopy& b) { return a.out_begins < b.out_begins; });
  GapPlan plan;
  for (const EvaluatedCopy& copy : copies) {
    if (copy.issue == kNone) continue;
    gaps[copy.gap].due = copy.due;
    const bool early = copy.swaps_out && copy.out_op != kNone && copy.out_op > 0 && copy.out_op <= copy.release;
    plan.copied.push_back({copy.gap, std::clamp(copy.issue, copy.release + 1, copy.due), early ? copy.out_op : 0});
  }
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
