// The part of the driver that finds places, asks policies and prevents losses.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/engine/driver.hpp"
#include "traces/program_names.hpp"

namespace tidepool {
namespace {

/// Limit on the answers to one request, per version of the trace. An answer that makes room evicts a version, so a
/// policy that gives more answers brings versions back in between, or makes no room.
constexpr std::size_t kAnswersPerVersion = 4;

/// Base of the limit on reruns in one iteration, for runs with or without an overhead limit. The limit is this number
/// plus ops^2, the reruns of a program in which every op needs a rerun of all others.
constexpr std::int64_t kRerunsOfSmallSteps = 1'000'000;

/// Refuses `kRun` in the answer to a request: the op would need places itself, and ask again.
void refuse_runs(const std::vector<Action>& wishes, OpId before) {
  for (Action wish : wishes) {
    if (wish.verb != Verb::kRun) continue;
    wish.before = before;
    throw PlanError{fmt::format("{}: a policy cannot decide this while a place is looked for", to_text(wish))};
  }
}

}  // namespace

Request Driver::request_for(VersionId v) const {
  return {trace_.size(v), trace_.buffer(trace_.version(v).buffer).stream, v, next_op(), timeline_.now(before_)};
}

/// Frees the place of `v`, which `users` have used besides its own stream.
void Driver::give_back(VersionId v, const Block& block, const PlaceUsers::Streams& users) {
  const StreamId own = trace_.buffer(trace_.version(v).buffer).stream;
  std::vector<StreamUse> uses;
  for (const StreamId user : users) uses.push_back({user, timeline_.done(user)});
  placed_ -= block.size;
  pool_->give_back(block, {own, next_op(), timeline_.done(own), uses});
}

/// Frees the places that end with `op`, which has just run.
void Driver::give_back_ending(OpId op) {
  for (Ending& each : ending_) {
    users_.note_run(each.users, each.version, op);
    give_back(each.version, each.block, each.users);
  }
  ending_.clear();
}

std::optional<Block> Driver::place(const Request& request) {
  const std::optional<Block> block = pool_->place(request);
  if (block) placed_ += block->size;
  return block;
}

Block Driver::find_place(VersionId v) {
  Request request = request_for(v);
  if (calls_.any_anticipates()) anticipate(request);
  bool evicted = false;
  std::size_t left = kAnswersPerVersion * states_.size() + 1;
  device_.forget_refused();
  for (;;) {
    if (const std::optional<Block> block = place(request)) {
      if (!evicted) return *block;
      ++cost_.evicting_allocations;
      cost_.free_shares +=
          static_cast<double>((spec_.capacity - placed_).count()) / static_cast<double>(spec_.capacity.count());
      return *block;
    }
    if (const std::size_t kept = temporaries_.size(); kept > 0)
      if (drop_temporaries(0); temporaries_.size() < kept) continue;
    if (!leaving_.empty())
      settle_front();  // a copy under way frees memory without a decision
    else if (left-- > 0 && ask_policies(request))
      evicted = true;
    else if (!drop_rewritten())
      out_of_memory(request);
    request.now = timeline_.now(before_);
  }
}

/// Drops the resident outputs of ops that are about to run again. The run writes all outputs again, so these drops cost
/// nothing. @return  false if there is none
bool Driver::drop_rewritten() {
  if (assume_.copy_on_write) return false;
  bool done = false;
  for (const Frame& frame : frames_) {
    if (!frame.target.valid()) continue;
    for (const VersionId made : trace_.made(frame.op)) {
      if (!state(made).filled || std::find(scratched_.begin(), scratched_.end(), made) != scratched_.end()) continue;
      drop_by_rule(made);
      done = true;
    }
  }
  return done;
}

void Driver::anticipate(const Request& request) {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (!calls_.anticipates(i)) continue;
    wishes_.clear();
    calls_.ask(i, [&](Policy& policy, const View& view) { policy.before_place(view, request, wishes_); });
    refuse_runs(wishes_, before_);
    if (wishes_.empty()) continue;
    answer(Occasion::kExpected, i, &request, wishes_);
  }
}

bool Driver::ask_policies(const Request& request) {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    wishes_.clear();
    calls_.ask(i, [&](Policy& policy, const View& view) { policy.make_room(view, request, wishes_); });
    refuse_runs(wishes_, before_);
    if (!wishes_.empty() && answer(Occasion::kRequest, i, &request, wishes_)) return true;
  }
  return false;
}

/// Swaps a version in early if it fits without evictions. @return  whether it was swapped in
bool Driver::prefetch(VersionId v) {
  VersionState& s = state(v);
  if (s.filled || s.placed || s.locks > 0 || !s.on_host || !s.created) return false;  // it need not or cannot come in
  const std::optional<Block> block = place(request_for(v));
  if (!block) return false;
  act(Verb::kSwapIn, v.value(), *block);
  now_evictable(v);
  filled_.assign(1, v);
  calls_.computed(filled_);
  return true;
}

/// Swaps in versions that drafts ask for, in their order, into memory that is free or that copies to the host certainly
/// free by `until`. Versions that do not fit are tried again before and during every later op, until the program needs
/// them.
void Driver::start_prefetches(Nanos until) {
  if (awaited_.empty()) return;
  std::erase_if(awaited_, [&](const Awaited& awaited) {
    const VersionId v = awaited.version;
    if (!state(v).filled) return false;
    if (state(v).leaving) calls_.changed(v);
    state(v).leaving = false;  // it has not left yet, so it stays
    return true;
  });
  while (!awaited_.empty()) {
    const auto [v, policy] = awaited_.front();
    const VersionState& s = state(v);
    if (!s.filled && s.on_host && s.created && s.wanted) {
      if (!prefetch(v)) {
        if (leaving_.empty() || !timeline_.has_left(leaving_.front(), until)) return;
        settle_front();
        continue;
      }
      tell_of(Occasion::kPlan, policy, {.verb = Verb::kSwapIn, .before = before_, .subject = v.value()});
    }
    awaited_.pop_front();
  }
}

/// Notes that `v` is dropped when its copy has ended. leaving_ is sorted by these ends: copies to storage and to the
/// host do not end in the order of their issue.
void Driver::leave_once_copied(VersionId v) {
  const auto later = [&](Nanos end, VersionId other) { return end < state(other).host_ready; };
  leaving_.insert(std::upper_bound(leaving_.begin(), leaving_.end(), state(v).host_ready, later), v);
  state(v).leaving = true;
  calls_.changed(v);
}

void Driver::settle_front() {
  const VersionId v = leaving_.front();
  leaving_.pop_front();
  if (!state(v).leaving) return;  // it was needed again before it had left
  state(v).leaving = false;
  take_place_away(v, Verb::kDrop);
}

void Driver::settle_past() {
  while (!leaving_.empty() && timeline_.has_left(leaving_.front(), clock_)) settle_front();
}

void Driver::take_place_away(VersionId v, Verb verb) {
  VersionState& s = state(v);
  const Block block = place_of(v);
  const bool had_content = s.filled;
  s.leaving = false;
  act(verb, v.value());
  give_back(v, block, users_.of(v));
  if (assume_.replay_views)
    for (const OpId viewer : trace_.viewers(v)) {
      if (viewer.value() > op_) break;
      for (const Use& use : trace_.uses(viewer))
        if (use.access == Access::kView && trace_.root(use.out) == v) state(use.out).defined = false;
    }
  if (verb == Verb::kDrop || s.regenerable) losses_.note_drop();
  losses_.note_absent(v);
  calls_.changed(v);
  if (had_content) calls_.dropped(v);
}

/// A text about the use of host memory and storage, if host memory is limited.
std::string Driver::off_device_text() const {
  const HostMemory& host = spec_.machine.host;
  const Storage& storage = spec_.machine.storage;
  if (host.capacity == HostMemory{}.capacity) return "";
  std::string text =
      fmt::format(", {} are in use of {} on the host", to_text(timeline_.held_on_host()), to_text(host.capacity));
  if (storage.capacity > Bytes{})
    text += fmt::format(", {} of {} in storage", to_text(timeline_.held_in_storage()), to_text(storage.capacity));
  return text;
}

/// The last refusal of the device: "; the device refused the pool 20 MiB: 30 MiB of 40 MiB are reserved"; "" if
/// there was none.
std::string Driver::refused_text() const {
  if (device_.refused() == Bytes{}) return "";
  return fmt::format("; the device refused the pool {}: {} of {} are reserved", to_text(device_.refused()),
                     to_text(device_.reserved()), to_text(spec_.capacity));
}

namespace {

/// A size as text. If another size has the same text, the bytes are added: "49 MiB (51380225 B)".
std::string text_beside(Bytes size, Bytes other) {
  const std::string text = to_text(size);
  return size != other && text == to_text(other) ? fmt::format("{} ({} B)", text, size.count()) : text;
}

}  // namespace

void Driver::out_of_memory(const Request& request) {
  const Bytes hole = pool_->largest_hole();
  shortage_ = {before_, request.version, request.size, timeline_.held(), hole};
  Bytes needed{};
  if (before_.valid()) {
    std::vector<VersionId> working_set;
    for (const Use& use : trace_.uses(before_)) {
      if (use.in.valid()) working_set.push_back(trace_.root(use.in));
      if (use.out.valid() && (assume_.copy_on_write || !trace_.version(use.out).parent.valid()))
        working_set.push_back(trace_.root(use.out));
    }
    std::sort(working_set.begin(), working_set.end());
    working_set.erase(std::unique(working_set.begin(), working_set.end()), working_set.end());
    for (const VersionId v : working_set) needed += trace_.size(v);
  }
  const bool never = needed > spec_.capacity && assume_.name.empty();
  throw Stop{
      never ? Outcome::kInfeasible : Outcome::kOutOfMemory,
      fmt::format("{} wants {} for {}; {} are held of {}, the largest hole is {}{}, and no policy makes "
                  "room{}{}",
                  before_.valid() ? op_text(trace_, before_) : "the end of the step", text_beside(request.size, hole),
                  buffer_text(trace_, trace_.version(request.version).buffer), to_text(timeline_.held()),
                  to_text(spec_.capacity), text_beside(hole, request.size), off_device_text(), refused_text(),
                  never ? fmt::format("; what this op uses at once takes {}", to_text(needed)) : "")};
}

void Driver::check_limit() {
  const auto ops = static_cast<std::int64_t>(trace_.ops().size());
  if (timeline_.recompute_count() > kRerunsOfSmallSteps + ops * ops)
    throw Stop{Outcome::kTimeLimit, fmt::format("ops have been run again {} times before op {} of {}",
                                                timeline_.recompute_count(), op_, trace_.ops().size())};
  if (!spec_.overhead_limit) return;
  const Nanos extra = timeline_.overhead(baseline_);
  if (static_cast<double>(extra.count()) > (*spec_.overhead_limit - 1) * static_cast<double>(baseline_.count()))
    throw Stop{
        Outcome::kTimeLimit,
        fmt::format(
            "recomputation and stalls take {} beside the step's {}, more than the limit allows, before op {} of {}",
            to_text(extra), to_text(baseline_), op_, trace_.ops().size())};
}

/// Whether the content of `v` cannot be recomputed, so that the end of its last place or copy loses it for good. Always
/// false if there are no policies, or if sources are pinned: then losses need no care.
bool Driver::anchored(VersionId v) const { return !policies_.empty() && !assume_.pin_sources && !state(v).regenerable; }

/// Brings back content that the program still needs and that could only be recomputed from `v`, while that is possible.
void Driver::before_loss(VersionId v) {
  if (!losses_.anything_dropped()) return;
  std::vector<VersionId> wanted = losses_.before(v);
  wanted.insert(wanted.begin(), v);
  for (const VersionId w : wanted) {
    if (w != v && !state(w).filled) bring_back(w);
    lock(w);  // all of them must be resident until the loss
  }
  for (const VersionId w : wanted) unlock(w);
}

}  // namespace tidepool
