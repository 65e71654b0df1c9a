// The driver's part that carries out a whole plan instead of deciding.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/engine/driver.hpp"
#include "simulator/whole_plan.hpp"

namespace tidepool {
namespace {

bool is_next(const Action& action) { return action.verb == Verb::kNext; }

}  // namespace

/// Takes a whole plan from the only policy, if it has one.
void Driver::take_whole_plan() {
  if (auto* const planner = dynamic_cast<WholePlanner*>(policies_.front().get())) whole_ = planner->whole_plan();
  if (!whole_) return;
  const std::vector<Action>& actions = whole_->actions;
  for (auto first = actions.begin();;) {
    const auto last = std::find_if(first, actions.end(), is_next);
    whole_iterations_.emplace_back(first, last);
    if (last == actions.end()) break;
    first = std::next(last);
  }
}

/// Chooses the actions of an iteration: its own in the plan or, behind the plan's end, those of the iteration of the
/// plan's cycle that recurs. Carries out the first of them, which give initial versions their places.
void Driver::start_following(int iteration) {
  const auto number = static_cast<std::size_t>(iteration), known = whole_iterations_.size();
  const auto cycle = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(whole_->cycle, 1)), 1, known);
  following_ = whole_iterations_[number < known ? number : known - cycle + (number - known) % cycle];
  for (std::size_t i = 0; i < current_.size(); ++i)
    if (trace_.buffers()[i].born_before) current_[i] = trace_.first_version(BufferId{i});
  const auto begins = [&](const Action& action) {
    if (action.verb != Verb::kAlloc || action.subject >= trace_.versions().size()) return false;
    const Version& version = trace_.versions()[action.subject];
    return version.kind == VersionKind::kInitial && trace_.buffer(version.buffer).born_before;
  };
  while (!following_.empty() && begins(following_.front())) {
    follow(following_.front());
    following_ = following_.subspan(1);
  }
  for (std::size_t i = 0; i < current_.size(); ++i)
    if (const BufferId buffer{i}; trace_.buffer(buffer).born_before && !state(current_[i]).placed)
      start_on_host(buffer, iteration);
}

void Driver::follow_iteration() {
  for (const Action& action : following_) follow(action);
  before_ = OpId{};
  if (issued_ < trace_.ops().size())
    throw Stop{Outcome::kError, fmt::format("the plan of this run ends before op {}", issued_)};
}

/// Carries out one action of the plan, with a place from the pool. Checks its verb and its subject; emit() checks the
/// rest.
void Driver::follow(const Action& action) {
  before_ = action.before;
  op_ = static_cast<std::uint32_t>(issued_);
  const auto refuse = [&](std::string_view reason) { throw PlanError{fmt::format("{}: {}", to_text(action), reason)}; };
  if (action.subject >= (action.verb == Verb::kRun ? trace_.ops().size() : trace_.versions().size()))
    refuse("no such id");
  const VersionId v{action.subject};
  switch (action.verb) {
    case Verb::kAlloc:
    case Verb::kSwapIn:
    case Verb::kScratch: {
      const Request request = request_for(v);
      const std::optional<Block> block = place(request);
      if (!block) out_of_memory(request);
      act(action.verb, action.subject, *block);
      if (action.verb == Verb::kSwapIn) tell_of(Occasion::kPlan, 0, action);
      if (action.verb == Verb::kScratch) ending_.push_back({v, *block, {}});
      return;
    }
    case Verb::kFree:
    case Verb::kDrop: {
      const Bytes held = state(v).held;
      state(v).placed ? take_place_away(v, action.verb) : act(action.verb, action.subject);
      if (action.verb == Verb::kDrop) tell_of(Occasion::kPlan, 0, {action.verb, before_, action.subject, {}, held});
      return;
    }
    case Verb::kRun:
      return follow_run(OpId{action.subject});
    case Verb::kSwapOut:
    case Verb::kCopy:
    case Verb::kAwait:
      act(action.verb, action.subject);
      if (action.verb != Verb::kCopy) tell_of(Occasion::kPlan, 0, action);
      return;
    default:
      refuse("a policy cannot decide this");
  }
}

void Driver::follow_run(OpId op) {
  const bool again = op.index() < issued_;
  if (!again && trace_.op(op).kind == OpKind::kHostWait) pool_->synchronized(next_op(), clock_);
  for (const VersionId made : trace_.made(op)) {
    const VersionId parent = trace_.version(made).parent;
    const bool apart = std::any_of(ending_.begin(), ending_.end(), [&](const Ending& e) { return e.version == made; });
    if (apart || has_empty_place(made) || !parent.valid() || !state(parent).placed) continue;
    if (state(made).filled)
      ending_.push_back({parent, place_of(parent), users_.of(parent)});
    else
      users_.take_over(parent, made);
  }
  act(Verb::kRun, op.value());
  if (again) tell_of(Occasion::kPlan, 0, {.verb = Verb::kRun, .before = before_, .subject = op.value()});
  users_.note_run(op);
  give_back_ending(op);
  if (!again) {
    for (const VersionId made : trace_.made(op)) current_[trace_.version(made).buffer.index()] = made;
    issued_ = op.index() + 1;
  }
  check_limit();
}

}  // namespace tidepool
