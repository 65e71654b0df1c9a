// The part of the driver that carries out answers of policies, and reports them in explained runs.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/engine/driver.hpp"

namespace tidepool {
namespace {

/// Whether `op` or a later op reads `v`, or the buffer of `v` outlives the step.
bool is_read_from(const Trace& trace, VersionId v, std::uint32_t op) {
  const std::span readers = trace.readers(v);
  return (!readers.empty() && readers.back().value() >= op) || trace.buffer(trace.version(v).buffer).outlives;
}

}  // namespace

/// Carries out the wishes of `policy`, and reports them in an explained run. @return  false if nothing was done
/// @param request  the request for which the policy was asked; null: the policy was called before an op runs
bool Driver::answer(Occasion occasion, std::size_t policy, const Request* request, const std::vector<Action>& wishes) {
  const bool may_lose = request == nullptr;
  if (!tell_) return carry_out(wishes, may_lose, nullptr);
  Decision decision = decision_of(occasion, policy);
  if (request != nullptr) decision.request = *request;
  if (occasion == Occasion::kRequest)
    decision.ranking = ranking_of(*policies_[policy], calls_.view(policy), *request);
  else if (follows_plan(*policies_[policy]))
    decision.occasion = Occasion::kPlan;
  try {
    const bool done = carry_out(wishes, may_lose, &decision);
    tell_(decision);
    return done;
  } catch (const Stop&) {  // the run ends early, but some wishes were carried out
    tell_(decision);
    throw;
  }
}

Decision Driver::decision_of(Occasion occasion, std::size_t policy) const {
  Decision decision;
  decision.iteration = static_cast<int>(totals_.size());
  decision.before = before_;
  decision.time = clock_;
  decision.occasion = occasion;
  decision.policy = policy;
  return decision;
}

/// Reports one action that has just been carried out.
void Driver::tell_of(Occasion occasion, std::size_t policy, const Action& action) {
  if (!tell_) return;
  Decision decision = decision_of(occasion, policy);
  decision.chosen.push_back(action);
  if (action.verb == Verb::kDrop) decision.freed = action.size;
  tell_(decision);
}

/// Turns wishes of a policy into actions. @return  false if nothing was done
/// @param may_lose  whether content that the program does not read again may be dropped for good. Before such a drop,
/// content that can only be recomputed from it is brought back, which needs places.
/// @param decision  receives the result of each wish; may be null
bool Driver::carry_out(const std::vector<Action>& wishes, bool may_lose, Decision* decision) {
  bool done = false;
  for (const Action& wish : wishes) {
    if (wish.subject >= (wish.verb == Verb::kRun ? trace_.ops().size() : trace_.versions().size()))
      refuse_wish(wish, "no such id");
    const bool evicts = wish.verb == Verb::kDrop || wish.verb == Verb::kSwapOut;
    const Bytes held = evicts ? states_[wish.subject].held : Bytes{};
    const bool came = carry_out(wish, may_lose);
    done |= came;
    if (decision == nullptr) continue;
    const bool leaves = came && evicts && states_[wish.subject].leaving;
    // A swap-out of a version that the host already has is a drop.
    const Verb verb = came && evicts && !leaves ? Verb::kDrop : wish.verb;
    (came ? decision->chosen : decision->in_vain).push_back({verb, before_, wish.subject, {}, held});
    if (came) (leaves ? decision->leaving : decision->freed) += held;
  }
  return done;
}

bool Driver::carry_out(const Action& wish, bool may_lose) {
  const VersionId v{wish.subject};
  switch (wish.verb) {
    case Verb::kDrop:
    case Verb::kSwapOut: {
      VersionState& s = state(v);
      if (!s.filled || s.leaving) return false;  // it is absent or leaving already
      if (s.locks > 0 || s.pinned) refuse_wish(wish, "it is in use");
      if (wish.verb == Verb::kSwapOut && !s.on_host) {
        if (!timeline_.fits_on_host(v)) return false;
        act(Verb::kSwapOut, v.value());
        leave_once_copied(v);
      } else if (wish.verb == Verb::kSwapOut && !timeline_.has_left(v, clock_)) {
        leave_once_copied(v);  // an earlier copy to the host may still be under way
      } else {
        const bool loses = may_lose && !s.on_host && s.wanted && !is_read_from(trace_, v, op_);
        if (!loses && !s.on_host && s.wanted && !s.regenerable)
          refuse_wish(wish, "it could not be recomputed and is not on the host");
        loses ? lose_unread(v) : take_place_away(v, Verb::kDrop);
      }
      return true;
    }
    case Verb::kSwapIn:
      return prefetch(v);
    case Verb::kAwait:
      if (!state(v).on_host) return false;
      if (!before_.valid()) refuse_wish(wish, "no op follows");
      act(Verb::kAwait, v.value());
      return true;
    case Verb::kRun: {
      bool done = false;
      for (const VersionId made : trace_.made(OpId{wish.subject}))
        if (state(made).created && state(made).wanted && !state(made).filled) {
          bring_back(made);
          done = true;
        }
      return done;
    }
    default:
      refuse_wish(wish, "a policy cannot decide this");
  }
}

/// @throws PlanError  with the wish, placed at the present op, and the reason why it cannot be carried out
void Driver::refuse_wish(Action wish, std::string_view reason) const {
  wish.before = before_;
  throw PlanError{fmt::format("{}: {}", to_text(wish), reason)};
}

/// Moves drops of content that the program does not read again to the end. Such content may be lost for good; until
/// then, other content can be recomputed from it.
void Driver::lose_last(std::vector<Action>& wishes) const {
  std::stable_partition(wishes.begin(), wishes.end(), [&](const Action& wish) {
    return wish.verb != Verb::kDrop || wish.subject >= trace_.versions().size() ||
           is_read_from(trace_, VersionId{wish.subject}, op_);
  });
}

/// Drops content that the program does not read again, although its buffer is not freed yet. When other content is
/// about to be lost later, the driver does not bring this content back.
void Driver::lose_unread(VersionId v) {
  state(v).wanted = false;
  const bool loses = anchored(v);
  if (loses) losses_.next(), before_loss(v);
  take_place_away(v, Verb::kDrop);
  if (loses) losses_.next(), losses_.after(v);
}

/// Drops a version by the engine's own rules, without asking a policy.
void Driver::drop_by_rule(VersionId v) {
  const Bytes held = state(v).held;
  take_place_away(v, Verb::kDrop);
  tell_of(Occasion::kRules, 0, {Verb::kDrop, before_, v.value(), {}, held});
}

}  // namespace tidepool
