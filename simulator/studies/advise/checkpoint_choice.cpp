#include "simulator/studies/advise/checkpoint_choice.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "simulator/studies/advise/step_uses.hpp"
#include "traces/builder.hpp"
#include "traces/copied.hpp"

namespace tidepool {

namespace {

/// Builds the changed program step by step.
class Changer {
 public:
  Changer(const Trace& trace, const std::vector<const CheckpointedCall*>& calls) : trace_{trace}, calls_{calls} {
    std::sort(calls_.begin(), calls_.end(),
              [](const CheckpointedCall* a, const CheckpointedCall* b) { return a->again < b->again; });
  }

  std::vector<ChangedStep> run() {
    find_ends();
    steps_.reserve(trace_.events().size() * 2);
    std::size_t next_end = 0, next_call = 0;
    for (std::size_t i = 0; i < trace_.events().size(); ++i) {
      for (; next_call < calls_.size() && calls_[next_call]->again == i; ++next_call) run_again(*calls_[next_call]);
      if (trace_.events()[i].kind != EventKind::kFree) add(i, false);
      for (; next_end < ends_.size() && std::get<0>(ends_[next_end]) == i; ++next_end)
        steps_.push_back({EventKind::kFree, std::get<1>(ends_[next_end]), std::get<2>(ends_[next_end])});
    }
    return std::move(steps_);
  }

 private:
  void add(std::size_t position, bool again) {
    steps_.push_back({trace_.events()[position].kind, trace_.events()[position].id, again});
  }

  void find_ends() {
    std::vector<std::size_t> end(trace_.buffers().size(), StepUses::kNowhere);
    for (std::size_t i = 0; i < trace_.events().size(); ++i)
      if (trace_.events()[i].kind == EventKind::kFree) end[trace_.events()[i].id] = i;
    outlasts_.resize(end.size());
    kept_.resize(end.size());
    for (const CheckpointedCall* call : calls_) {
      for (const CheckpointedCall::End& one : call->ends) end[one.buffer.index()] = one.position;
      for (const CheckpointedCall::End& one : call->again_ends) {
        outlasts_[one.buffer.index()] = true;
        ends_.emplace_back(one.position, one.buffer.value(), true);
      }
    }
    for (const CheckpointedCall* call : calls_) {
      for (const std::size_t op : call->kept)
        for (std::size_t i = allocations_for(trace_, op); i < op; ++i) kept_[trace_.events()[i].id] = true;
      // A kept buffer ends in the second run, see run_again(). If this run stops before that, the buffer ends at
      // `left`.
      for (const CheckpointedCall::End& one : call->kept_ends)
        end[one.buffer.index()] = one.position < call->again_stop ? StepUses::kNowhere : call->left;
    }
    for (const CheckpointedCall* call : calls_)
      for (const BufferId input : call->inputs)
        if (end[input.index()] != StepUses::kNowhere) end[input.index()] = std::max(end[input.index()], call->left);
    for (std::size_t i = 0; i < end.size(); ++i)
      if (end[i] != StepUses::kNowhere) ends_.emplace_back(end[i], static_cast<std::uint32_t>(i), false);
    std::sort(ends_.begin(), ends_.end());
  }

  void run_again(const CheckpointedCall& call) {
    std::vector<std::uint32_t> live;
    for (std::size_t i = call.call.first; i < call.again_stop; ++i) {
      const Event& event = trace_.events()[i];
      if (event.kind == EventKind::kRun && !std::binary_search(call.kept.begin(), call.kept.end(), i)) add(i, true);
      if (event.kind == EventKind::kAlloc && !kept_[event.id]) {
        add(i, true);
        live.push_back(event.id);
      }
      if (event.kind == EventKind::kFree && std::erase(live, event.id) > 0) add(i, true);
      for (const CheckpointedCall::End& one : call.kept_ends)
        if (one.position == i) steps_.push_back({EventKind::kFree, one.buffer.value(), false});
    }
    for (const std::uint32_t buffer : live)
      if (!outlasts_[buffer]) steps_.push_back({EventKind::kFree, buffer, true});
  }

  const Trace& trace_;
  std::vector<const CheckpointedCall*> calls_;                      ///< in the order in which they run again
  std::vector<std::tuple<std::size_t, std::uint32_t, bool>> ends_;  ///< position, buffer, whether of the second run
  std::vector<bool> kept_;                                          ///< by buffer: the second run does not allocate it
  std::vector<bool> outlasts_;                                      ///< by buffer: its copy outlives the second run
  std::vector<ChangedStep> steps_;
};

constexpr std::size_t kTried = 6;  // the best of at most this many promising modules is added

double cost(Nanos duration) { return static_cast<double>(std::max<std::int64_t>(duration.count(), 1)); }

bool is_better(const CheckpointChoice& a, const CheckpointChoice& b, Bytes capacity) {
  const Bytes over_a = std::max(a.peak - capacity, Bytes{}), over_b = std::max(b.peak - capacity, Bytes{});
  return std::tuple{over_a, a.duration, a.modules.size(), a.peak} <
         std::tuple{over_b, b.duration, b.modules.size(), b.peak};
}

}  // namespace

std::vector<ChangedStep> checkpointed_steps(const Trace& trace, const std::vector<const CheckpointedCall*>& calls) {
  return Changer{trace, calls}.run();
}

ChangedPeak peak_of(const Trace& trace, const std::vector<ChangedStep>& steps) {
  Bytes live;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) live += buffer.size;
  ChangedPeak peak{live, 0};
  std::size_t position = 0;
  for (const ChangedStep& step : steps) {
    if (step.kind == EventKind::kFree) live -= trace.buffer(BufferId{step.id}).size;
    if (step.kind == EventKind::kRun && !step.again) position = trace.position(OpId{step.id}) + 1;
    if (step.kind != EventKind::kAlloc) continue;
    live += trace.buffer(BufferId{step.id}).size;
    if (live > peak.bytes) peak = {live, position};
  }
  return peak;
}

Trace checkpointed_trace(const Trace& trace, const std::vector<const CheckpointedCall*>& calls) {
  TraceBuilder builder{trace.data().streams};
  std::vector<BufferId> first(trace.buffers().size()), second(first.size());
  std::vector<const CheckpointedCall*> owner(first.size());
  for (const CheckpointedCall* call : calls)
    for (const CheckpointedCall::End& end : call->again_ends) owner[end.buffer.index()] = call;
  const auto spec = [&](std::size_t i) { return copied(builder, trace, BufferId{i}); };
  for (std::size_t i = 0; i < first.size(); ++i)
    if (trace.buffers()[i].born_before) first[i] = builder.existing(spec(i));
  const auto live = [&](BufferId id) { return id.valid() && builder.live(id); };
  for (const ChangedStep& step : checkpointed_steps(trace, calls)) {
    if (step.kind == EventKind::kAlloc) (step.again ? second : first)[step.id] = builder.alloc(spec(step.id));
    if (step.kind == EventKind::kFree) builder.free((step.again ? second : first)[step.id]);
    if (step.kind != EventKind::kRun) continue;
    const Op op = copied(builder, trace, OpId{step.id});
    std::vector<TraceBuilder::Touch> touches;
    for (const Use& use : trace.uses(OpId{step.id})) {
      const std::size_t i = buffer_of(trace, use).index();
      const bool own = step.again || (owner[i] != nullptr && op.phase == Phase::kBackward &&
                                      lies_in(trace.text(trace.op(OpId{step.id}).module), owner[i]->call.module));
      const BufferId wanted = live(second[i]) && (own || !live(first[i])) ? second[i] : first[i];
      if (step.again && !live(wanted))
        continue;  // parameters that were gathered, and are gathered elsewhere for backward
      if (live(wanted) || use.evidence != Evidence::kParameter) touches.push_back({wanted, use.access, use.evidence});
    }
    builder.run(op, touches);
  }
  builder.meta() = trace.data().meta;
  builder.losses() = trace.data().losses;
  return builder.finish();
}

CheckpointSearch::CheckpointSearch(const Trace& trace, const KeptOperators& kept) : trace_{trace} {
  const StepUses uses{trace};
  std::set<std::string> left_out;
  std::map<std::string, Module> found;
  for (const ModuleCall& call : module_calls(trace)) {
    std::optional<CheckpointedCall> checkpointed = checkpointed_call(trace, uses, call, kept);
    if (!checkpointed) {
      left_out.insert(call.module);
      continue;
    }
    Module& module = found[call.module];
    module.path = call.module;
    module.duration += checkpointed->duration;
    module.calls.push_back(std::move(*checkpointed));
  }
  for (auto& [path, module] : found)
    if (!left_out.contains(path)) modules_.push_back(std::move(module));
  std::stable_sort(modules_.begin(), modules_.end(), [](const Module& a, const Module& b) {
    return a.calls.front().call.first < b.calls.front().call.first;  // an outer module before an inner one
  });
}

CheckpointChoice CheckpointSearch::evaluate(const Set& set) const {
  CheckpointChoice choice;
  for (const std::size_t i : set) {
    choice.modules.push_back(modules_[i].path);
    choice.duration += modules_[i].duration;
    for (const CheckpointedCall& call : modules_[i].calls) choice.calls.push_back(&call);
  }
  choice.peak = peak_of(trace_, checkpointed_steps(trace_, choice.calls)).bytes;
  return choice;
}

/// The set with one more module, which replaces modules of the set that lie in it.
CheckpointSearch::Set CheckpointSearch::with(const Set& set, std::size_t module) const {
  Set more;
  for (const std::size_t i : set)
    if (!lies_in(modules_[i].path, modules_[module].path)) more.push_back(i);
  more.insert(std::lower_bound(more.begin(), more.end(), module), module);
  return more;
}

/// Bytes by which one more module lowers the memory at a position.
Bytes CheckpointSearch::relief(const Set& set, std::size_t module, std::size_t position) const {
  const auto away = [&](std::size_t i) {
    Bytes bytes;
    for (const CheckpointedCall& call : modules_[i].calls)
      for (const CheckpointedCall::End& end : call.ends)
        if (end.position < position && position <= call.again) bytes += trace_.buffer(end.buffer).size;
    return bytes;
  };
  Bytes relief = away(module);
  for (const std::size_t i : set)
    if (lies_in(modules_[i].path, modules_[module].path)) relief -= away(i);
  return relief;
}

CheckpointSearch::Set CheckpointSearch::grow(Set set, Bytes capacity) const {
  for (;;) {
    const CheckpointChoice now = evaluate(set);
    if (now.peak <= capacity) return set;
    const std::size_t position = peak_of(trace_, checkpointed_steps(trace_, now.calls)).position;
    std::vector<std::pair<double, std::size_t>> worth;  // minus bytes per ns, so that the best is first
    for (std::size_t i = 0; i < modules_.size(); ++i) {
      if (std::any_of(set.begin(), set.end(),
                      [&](std::size_t j) { return lies_in(modules_[i].path, modules_[j].path); }))
        continue;
      const Bytes bytes = relief(set, i, position);
      if (bytes > Bytes{}) worth.emplace_back(-static_cast<double>(bytes.count()) / cost(modules_[i].duration), i);
    }
    std::sort(worth.begin(), worth.end());
    std::optional<Set> best;
    double best_worth = 0;
    for (std::size_t k = 0; k < std::min(worth.size(), kTried); ++k) {
      const Set more = with(set, worth[k].second);
      const CheckpointChoice tried = evaluate(more);
      const double gain = static_cast<double>((now.peak - std::max(tried.peak, capacity)).count()) /
                          cost(tried.duration - now.duration);
      if (now.peak > tried.peak && gain > best_worth) best = more, best_worth = gain;
    }
    if (!best) return set;
    set = std::move(*best);
  }
}

/// Removes modules that are not needed, the most expensive first. If the set does not fit, its peak may not rise.
CheckpointSearch::Set CheckpointSearch::prune(Set set, Bytes capacity) const {
  const Bytes limit = std::max(capacity, evaluate(set).peak);
  Set order = set;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return modules_[b].duration < modules_[a].duration; });
  for (const std::size_t i : order) {
    Set less = set;
    std::erase(less, i);
    if (evaluate(less).peak <= limit) set = std::move(less);
  }
  return set;
}

/// The first modules of a family, as few as fit; the whole family if no number of them fits.
CheckpointSearch::Set CheckpointSearch::first_of(const Set& family, Bytes capacity) const {
  std::size_t fewest = 1, most = family.size();
  while (fewest < most) {
    const std::size_t half = (fewest + most) / 2;
    if (evaluate({family.begin(), family.begin() + static_cast<std::ptrdiff_t>(half)}).peak <= capacity)
      most = half;
    else
      fewest = half + 1;
  }
  return {family.begin(), family.begin() + static_cast<std::ptrdiff_t>(most)};
}

std::vector<CheckpointChoice> CheckpointSearch::choices(Bytes capacity) const {
  const Bytes before = evaluate({}).peak;
  std::vector<CheckpointChoice> found;
  const auto add = [&](const Set& set) {
    CheckpointChoice choice = evaluate(set);
    if (choice.modules.empty() || choice.peak >= before) return;
    if (std::none_of(found.begin(), found.end(), [&](const auto& other) { return other.modules == choice.modules; }))
      found.push_back(std::move(choice));
  };
  std::optional<std::pair<CheckpointChoice, Set>> lowest;  // the family that is the best start for the search
  std::vector<std::string> paths;
  for (const Module& module : modules_) paths.push_back(module.path);
  for (const Set& family : module_families(paths)) {
    if (family.size() > 1) {
      const Set first = first_of(family, capacity);
      add(first);
      Set second;
      for (std::size_t i = 1; i < family.size(); i += 2) second.push_back(family[i]);
      add(second);
    }
    CheckpointChoice all = evaluate(family);
    if (!lowest || is_better(all, lowest->first, capacity)) lowest.emplace(std::move(all), family);
  }
  add(prune(grow({}, capacity), capacity));
  if (lowest) add(prune(grow(lowest->second, capacity), capacity));
  std::stable_sort(found.begin(), found.end(),
                   [&](const CheckpointChoice& a, const CheckpointChoice& b) { return is_better(a, b, capacity); });
  const auto first_over =
      std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.peak > capacity; });
  found.erase(first_over == found.begin() && !found.empty() ? first_over + 1 : first_over, found.end());
  return found;
}

}  // namespace tidepool
