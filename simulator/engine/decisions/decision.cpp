#include "simulator/engine/decisions/decision.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "simulator/options.hpp"
#include "simulator/registry.hpp"
#include "traces/program_names.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(Verb verb) {
  switch (verb) {
    case Verb::kDrop:
      return "drop";
    case Verb::kSwapOut:
      return "swap out";
    case Verb::kSwapIn:
      return "swap in";
    case Verb::kAwait:
      return "await";
    default:
      return "run";
  }
}

/// "drops version 31 of buffer 17 (conv1.weight)".
std::string action_text(const Trace& trace, const Action& action) {
  const auto buffer = [&] { return buffer_text(trace, trace.version(VersionId{action.subject}).buffer); };
  switch (action.verb) {
    case Verb::kDrop:
      return fmt::format("drops version {} of {}", action.subject, buffer());
    case Verb::kSwapOut:
      return fmt::format("swaps out version {} of {}", action.subject, buffer());
    case Verb::kSwapIn:
      return fmt::format("swaps in version {} of {}", action.subject, buffer());
    case Verb::kAwait:
      return fmt::format("awaits the copies of version {} of {}", action.subject, buffer());
    default:
      return fmt::format("runs {} again", op_text(trace, OpId{action.subject}));
  }
}

std::string actions_text(const Trace& trace, const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) text += (text.empty() ? "" : ", ") + action_text(trace, action);
  return text;
}

std::string occasion_text(const Decision& decision, const Trace& trace) {
  const auto request = [&] {
    return fmt::format("{} for {}", to_text(decision.request->size),
                       buffer_text(trace, trace.version(decision.request->version).buffer));
  };
  switch (decision.occasion) {
    case Occasion::kRequest:
      return request();
    case Occasion::kExpected:
      return "ahead of " + request();
    case Occasion::kBeforeRun:
      return "before it runs";
    case Occasion::kPlan:
      return "as planned";
    case Occasion::kRules:
      break;
  }
  return "without asking";
}

std::string_view word_of(Occasion occasion) {
  switch (occasion) {
    case Occasion::kRequest:
      return "request";
    case Occasion::kExpected:
      return "expected";
    case Occasion::kBeforeRun:
      return "before_run";
    case Occasion::kPlan:
      return "plan";
    case Occasion::kRules:
      break;
  }
  return "rules";
}

/// A score as text. Whole numbers, such as bytes and ns, have all their digits.
std::string score_text(double score) {
  return score == std::floor(score) && std::abs(score) < 1e15 ? fmt::format("{:.0f}", score)
                                                              : fmt::format("{:.6g}", score);
}

/// "; first of 41 by last use, ns: 31 at 120, 17 at 3400"; versions that are evicted together are written "31+32".
std::string ranking_text(const Ranking& ranking) {
  if (ranking.candidates == 0) return "";
  if (ranking.score.empty()) return fmt::format("; one of {}", ranking.candidates);
  std::string text = fmt::format("; first of {} by {}:", ranking.candidates, ranking.score);
  for (const RankedVersions& candidate : ranking.first) {
    std::string versions;
    for (const VersionId v : candidate.versions)
      versions += fmt::format("{}{}", versions.empty() ? "" : "+", v.value());
    text += fmt::format("{} {} at {}{}", &candidate == ranking.first.data() ? "" : ",", versions,
                        candidate.at_least ? "least " : "", score_text(candidate.score));
  }
  return text;
}

Json actions_json(const Trace& trace, const std::vector<Action>& actions) {
  Json all = Json::array();
  for (const Action& action : actions) {
    Json one{{"action", name_of(action.verb)}};
    one[action.verb == Verb::kRun ? "op" : "version"] = action.subject;
    if (action.verb != Verb::kRun) one["buffer"] = trace.version(VersionId{action.subject}).buffer.value();
    if (action.verb == Verb::kDrop || action.verb == Verb::kSwapOut) one["bytes"] = action.size.count();
    all.push_back(std::move(one));
  }
  return all;
}

std::string name_of_decider(const Decision& decision, const std::vector<std::string>& policies) {
  return decision.occasion == Occasion::kRules ? "the engine" : policies.at(decision.policy);
}

}  // namespace

std::vector<std::string> deciding_policies(const RunSpec& spec) {
  std::vector<std::string> names;
  for (const Spec& policy : spec.policy.policies)
    if (find_policy(policy.name).kind != PolicyKind::kNone) names.push_back(policy.name);
  return names;
}

std::string to_text(const Decision& decision, const Trace& trace, const std::vector<std::string>& policies) {
  std::string text =
      fmt::format("iteration {}, {} at {}: {}: {}", decision.iteration,
                  decision.before.valid() ? op_text(trace, decision.before) : "end of the step", to_text(decision.time),
                  occasion_text(decision, trace), name_of_decider(decision, policies));
  if (!decision.chosen.empty()) text += " " + actions_text(trace, decision.chosen);
  if (decision.freed > Bytes{}) text += fmt::format("; frees {}", to_text(decision.freed));
  if (decision.leaving > Bytes{}) text += fmt::format("; frees {} once copied", to_text(decision.leaving));
  if (!decision.in_vain.empty())
    text += fmt::format("{} in vain {}", decision.chosen.empty() ? "" : ";", actions_text(trace, decision.in_vain));
  return text + ranking_text(decision.ranking);
}

Json to_json(const Decision& decision, const Trace& trace, const std::vector<std::string>& policies) {
  Json object{{"iteration", decision.iteration}};
  if (decision.before.valid()) object["op"] = decision.before.value();
  object["time_ns"] = decision.time.count();
  object["occasion"] = word_of(decision.occasion);
  object["policy"] = name_of_decider(decision, policies);
  if (decision.request)
    object["request"] = {{"bytes", decision.request->size.count()},
                         {"buffer", trace.version(decision.request->version).buffer.value()},
                         {"version", decision.request->version.value()}};
  object["chosen"] = actions_json(trace, decision.chosen);
  if (!decision.in_vain.empty()) object["in_vain"] = actions_json(trace, decision.in_vain);
  object["freed_bytes"] = decision.freed.count();
  object["leaving_bytes"] = decision.leaving.count();
  const Ranking& ranking = decision.ranking;
  if (ranking.candidates == 0) return object;
  object["candidates"] = ranking.candidates;
  if (!ranking.score.empty()) object["score"] = ranking.score;
  object["first"] = Json::array();
  for (const RankedVersions& candidate : ranking.first) {
    Json versions = Json::array();
    for (const VersionId v : candidate.versions) versions.push_back(v.value());
    Json one{{"versions", std::move(versions)}};
    if (!ranking.score.empty()) {
      one["score"] = candidate.score;
      one["at_least"] = candidate.at_least;
    }
    object["first"].push_back(std::move(one));
  }
  return object;
}

}  // namespace tidepool
