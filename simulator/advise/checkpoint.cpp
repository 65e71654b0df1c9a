#include "simulator/advise/checkpoint.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "traces/builder.hpp"

namespace tidepool {
namespace {

/// Whether a use counts: an address among the parameters of a kernel says nothing where the framework told its uses.
bool counts(std::span<const Use> uses, const Use& use) {
  return use.evidence != Evidence::kParameter ||
         std::none_of(uses.begin(), uses.end(), [](const Use& other) { return other.evidence == Evidence::kSchema; });
}

BufferId buffer_of(const Trace& trace, const Use& use) {
  return trace.version(use.in.valid() ? use.in : use.out).buffer;
}

/// Content that is there without the forward pass: what may be changed by running a call twice.
bool stays(BufferKind kind) {
  return kind == BufferKind::kParameter || kind == BufferKind::kGradient || kind == BufferKind::kOptimizerState;
}

/// Follows one call through forward and backward.
class Follower {
 public:
  Follower(const Trace& trace, const StepUses& uses, const ModuleCall& call)
      : trace_{trace}, uses_{uses}, result_{.call = call, .ends = {}, .again_ends = {}, .inputs = {}, .duration = {}} {}

  std::optional<CheckpointedCall> run() {
    find_buffers();
    if (writes_to_input_) return {};
    find_backward();
    if (result_.again == StepUses::kNowhere) return {};
    for (const BufferId buffer : made_) find_ends(buffer);
    if (!drops_) return {};
    find_stop();
    return std::move(result_);
  }

 private:
  using At = StepUses::At;

  const ModuleCall& call() const { return result_.call; }
  const Op& op_at(std::size_t position) const { return trace_.op(OpId{trace_.steps()[position].id}); }
  bool in_call(std::size_t position) const { return position >= call().first && position < call().behind; }
  bool in_backward(std::size_t position) const {
    return position >= call().pass.forward_end && position < call().pass.backward_end &&
           op_at(position).phase == Phase::kBackward;
  }
  /// Whether the backward op at a position belongs to the module.
  bool of_module(std::size_t position) const { return lies_in(trace_.text(op_at(position).module), call().module); }
  bool made_in_call(BufferId buffer) const {
    const std::size_t alloc = uses_.of(buffer).alloc;
    return alloc != StepUses::kNowhere && in_call(alloc);
  }

  /// What the call makes, and its inputs.
  void find_buffers() {
    std::vector<bool> seen(trace_.buffers().size());
    for (std::size_t i = call().first; i < call().behind; ++i) {
      if (trace_.steps()[i].kind == StepKind::kAlloc) made_.push_back(BufferId{trace_.steps()[i].id});
      if (trace_.steps()[i].kind != StepKind::kRun) continue;
      const OpId op{trace_.steps()[i].id};
      for (const Use& use : trace_.uses(op)) {
        const BufferId buffer = buffer_of(trace_, use);
        if (!counts(trace_.uses(op), use) || made_in_call(buffer) || seen[buffer.index()] ||
            stays(trace_.buffer(buffer).kind))
          continue;
        seen[buffer.index()] = true;
        result_.inputs.push_back(buffer);
        // What was found among parameters only is no proof of a write.
        for (const At& at : uses_.of(buffer).uses)
          writes_to_input_ =
              writes_to_input_ || (at.writes && at.position >= call().first && at.position < call().pass.forward_end);
      }
    }
  }

  /// Where backward first needs what the call saved, and where last.
  void find_backward() {
    result_.again = StepUses::kNowhere;
    const auto needs = [&](std::size_t position, bool own) {
      if (result_.again == StepUses::kNowhere || position < result_.again) result_.again = position;
      if (own) result_.left = std::max(result_.left, position);
    };
    for (std::size_t i = call().pass.forward_end; i < call().pass.backward_end; ++i) {
      if (trace_.steps()[i].kind != StepKind::kRun || !in_backward(i) || !of_module(i)) continue;
      const OpId op{trace_.steps()[i].id};
      for (const Use& use : trace_.uses(op)) {
        const BufferId buffer = buffer_of(trace_, use);
        const std::size_t alloc = uses_.of(buffer).alloc;
        const bool of_forward = trace_.buffer(buffer).kind == BufferKind::kParameter ||
                                (alloc != StepUses::kNowhere && alloc < call().pass.forward_end);
        if (counts(trace_.uses(op), use) && of_forward) needs(i, true);
      }
    }
    for (const BufferId buffer : made_)
      if (!is_output(buffer))
        for (const At& at : uses_.of(buffer).uses)
          if (in_backward(at.position)) needs(at.position, of_module(at.position));
    if (result_.again == StepUses::kNowhere) return;
    result_.left = std::max(result_.left, result_.again);
    result_.again = allocations_for(trace_, result_.again);
  }

  /// Whether the forward pass goes on to use it behind the call.
  bool is_output(BufferId buffer) const {
    const std::vector<At>& uses = uses_.of(buffer).uses;
    return std::any_of(uses.begin(), uses.end(), [&](const At& at) {
      return at.position >= call().behind && at.position < call().pass.forward_end;
    });
  }

  /// Where Python drops the last name of what forward last uses at a position: a module's input is there until the
  /// module returns.
  std::size_t release(BufferId buffer, std::size_t position) const {
    std::string_view outermost = trace_.text(op_at(position).module);
    const std::string_view maker = trace_.text(op_at(next_op(uses_.of(buffer).alloc)).module);
    if (outermost.empty() || lies_in(maker, outermost)) return position;
    for (std::size_t dot = outermost.rfind('.'); dot != std::string_view::npos; dot = outermost.rfind('.', dot - 1)) {
      if (lies_in(maker, outermost.substr(0, dot))) break;
      outermost = outermost.substr(0, dot);
      if (dot == 0) break;
    }
    return behind_call(trace_, outermost, position) - 1;
  }

  std::size_t next_op(std::size_t position) const {
    while (trace_.steps()[position].kind != StepKind::kRun) ++position;
    return position;
  }

  void find_ends(BufferId buffer) {
    const StepUses::Life& life = uses_.of(buffer);
    if (life.free == StepUses::kNowhere || life.free < call().pass.forward_end) return;
    std::size_t last_forward = next_op(life.alloc), own = 0, others = 0;
    for (const At& at : life.uses) {
      if (at.position < call().pass.forward_end) last_forward = std::max(last_forward, at.position);
      if (in_backward(at.position)) (of_module(at.position) ? own : others) = at.position;
    }
    if (is_output(buffer)) {
      if (own == 0) return;  // others hold it, and they still do
      result_.again_ends.push_back({buffer, own > others ? life.free : own});
      if (own > others) result_.ends.push_back({buffer, others > 0 ? others : release(buffer, last_forward)});
    } else if (life.free > result_.again) {
      result_.again_ends.push_back({buffer, life.free});
      result_.ends.push_back({buffer, std::min(release(buffer, last_forward), call().behind - 1)});
      drops_ = drops_ || trace_.buffer(buffer).size > Bytes{};
    }
  }

  /// The second run stops where the last tensor is saved: behind the op that makes it, or in front of the op that reads
  /// it, as its backward does.
  void find_stop() {
    result_.again_stop = call().first;
    std::vector<std::string_view> backward_modules;
    for (const CheckpointedCall::End& end : result_.again_ends)
      for (const At& at : uses_.of(end.buffer).uses)
        if (in_call(at.position) && (at.writes || at.position == next_op(uses_.of(end.buffer).alloc)))
          result_.again_stop = std::max(result_.again_stop, at.position + 1);
    for (const CheckpointedCall::End& end : result_.again_ends)  // those that no op is known to use
      result_.again_stop = std::max(result_.again_stop, next_op(uses_.of(end.buffer).alloc) + 1);
    for (std::size_t i = call().behind; i-- > result_.again_stop;)
      if (trace_.steps()[i].kind == StepKind::kRun && saves_what_it_reads(i)) {
        result_.again_stop = allocations_for(trace_, i);
        break;
      }
    for (std::size_t i = call().first; i < result_.again_stop; ++i)
      if (trace_.steps()[i].kind == StepKind::kRun) result_.duration += op_at(i).duration;
  }

  bool saves_what_it_reads(std::size_t position) const {
    const OpId op{trace_.steps()[position].id};
    for (const Use& use : trace_.uses(op)) {
      if (!counts(trace_.uses(op), use)) continue;
      for (const At& at : uses_.of(buffer_of(trace_, use)).uses)
        if (in_backward(at.position) && op_at(at.position).module == op_at(position).module) return true;
    }
    return false;
  }

  const Trace& trace_;
  const StepUses& uses_;
  CheckpointedCall result_;
  std::vector<BufferId> made_;
  bool writes_to_input_ = false, drops_ = false;
};

/// Makes the changed program, step by step.
class Changer {
 public:
  Changer(const Trace& trace, const std::vector<const CheckpointedCall*>& calls) : trace_{trace}, calls_{calls} {
    std::sort(calls_.begin(), calls_.end(),
              [](const CheckpointedCall* a, const CheckpointedCall* b) { return a->again < b->again; });
  }

  std::vector<ChangedStep> run() {
    find_ends();
    steps_.reserve(trace_.steps().size() * 2);
    std::size_t next_end = 0, next_call = 0;
    for (std::size_t i = 0; i < trace_.steps().size(); ++i) {
      for (; next_call < calls_.size() && calls_[next_call]->again == i; ++next_call) run_again(*calls_[next_call]);
      if (trace_.steps()[i].kind != StepKind::kFree) add(i, false);
      for (; next_end < ends_.size() && std::get<0>(ends_[next_end]) == i; ++next_end)
        steps_.push_back({StepKind::kFree, std::get<1>(ends_[next_end]), std::get<2>(ends_[next_end])});
    }
    return std::move(steps_);
  }

 private:
  void add(std::size_t position, bool again) {
    steps_.push_back({trace_.steps()[position].kind, trace_.steps()[position].id, again});
  }

  void find_ends() {
    std::vector<std::size_t> end(trace_.buffers().size(), StepUses::kNowhere);
    for (std::size_t i = 0; i < trace_.steps().size(); ++i)
      if (trace_.steps()[i].kind == StepKind::kFree) end[trace_.steps()[i].id] = i;
    outlasts_.resize(end.size());
    for (const CheckpointedCall* call : calls_) {
      for (const CheckpointedCall::End& one : call->ends) end[one.buffer.index()] = one.position;
      for (const CheckpointedCall::End& one : call->again_ends) {
        outlasts_[one.buffer.index()] = true;
        ends_.emplace_back(one.position, one.buffer.value(), true);
      }
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
      const Step& step = trace_.steps()[i];
      if (step.kind == StepKind::kRun) add(i, true);
      if (step.kind == StepKind::kAlloc) {
        add(i, true);
        live.push_back(step.id);
      }
      if (step.kind == StepKind::kFree && std::erase(live, step.id) > 0) add(i, true);
    }
    for (const std::uint32_t buffer : live)
      if (!outlasts_[buffer]) steps_.push_back({StepKind::kFree, buffer, true});
  }

  const Trace& trace_;
  std::vector<const CheckpointedCall*> calls_;                      ///< in the order in which they run again
  std::vector<std::tuple<std::size_t, std::uint32_t, bool>> ends_;  ///< position, buffer, whether of the second run
  std::vector<bool> outlasts_;                                      ///< by buffer: that of the second run outlasts it
  std::vector<ChangedStep> steps_;
};

}  // namespace

StepUses::StepUses(const Trace& trace) : lives_(trace.buffers().size(), Life{kNowhere, kNowhere, {}}) {
  for (std::size_t i = 0; i < trace.steps().size(); ++i) {
    const Step& step = trace.steps()[i];
    if (step.kind == StepKind::kAlloc) lives_[step.id].alloc = i;
    if (step.kind == StepKind::kFree) lives_[step.id].free = i;
    if (step.kind != StepKind::kRun) continue;
    const std::span uses = trace.uses(OpId{step.id});
    for (const Use& use : uses) {
      if (!counts(uses, use)) continue;
      std::vector<At>& at = lives_[buffer_of(trace, use).index()].uses;
      const bool writes = use.out.valid() && use.access != Access::kView && use.evidence != Evidence::kParameter;
      if (at.empty() || at.back().position != i) at.push_back({i, writes});
      at.back().writes = at.back().writes || writes;
    }
  }
}

std::optional<CheckpointedCall> checkpointed_call(const Trace& trace, const StepUses& uses, const ModuleCall& call) {
  return Follower{trace, uses, call}.run();
}

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
    if (step.kind == StepKind::kFree) live -= trace.buffer(BufferId{step.id}).size;
    if (step.kind == StepKind::kRun && !step.again) position = trace.position(OpId{step.id}) + 1;
    if (step.kind != StepKind::kAlloc) continue;
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
  const auto spec = [&](std::size_t i) {
    Buffer copy = trace.buffers()[i];
    copy.name = builder.text(trace.text(copy.name));
    copy.born_before = copy.outlives = false;
    return copy;
  };
  for (std::size_t i = 0; i < first.size(); ++i)
    if (trace.buffers()[i].born_before) first[i] = builder.existing(spec(i));
  const auto live = [&](BufferId id) { return id.valid() && builder.live(id); };
  for (const ChangedStep& step : checkpointed_steps(trace, calls)) {
    if (step.kind == StepKind::kAlloc) (step.again ? second : first)[step.id] = builder.alloc(spec(step.id));
    if (step.kind == StepKind::kFree) builder.free((step.again ? second : first)[step.id]);
    if (step.kind != StepKind::kRun) continue;
    Op op = trace.op(OpId{step.id});
    op.start = op.launch = Nanos{-1};
    op.name = builder.text(trace.text(op.name));
    op.module = builder.text(trace.text(op.module));
    std::vector<TraceBuilder::Touch> touches;
    for (const Use& use : trace.uses(OpId{step.id})) {
      const std::size_t i = buffer_of(trace, use).index();
      const bool own = step.again || (owner[i] != nullptr && op.phase == Phase::kBackward &&
                                      lies_in(trace.text(trace.op(OpId{step.id}).module), owner[i]->call.module));
      const BufferId wanted = live(second[i]) && (own || !live(first[i])) ? second[i] : first[i];
      if (live(wanted) || use.evidence != Evidence::kParameter) touches.push_back({wanted, use.access, use.evidence});
    }
    builder.run(op, touches);
  }
  builder.meta() = trace.data().meta;
  builder.losses() = trace.data().losses;
  return builder.finish();
}

}  // namespace tidepool
