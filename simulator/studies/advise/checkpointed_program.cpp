#include "simulator/studies/advise/checkpointed_program.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

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
      if (live(wanted) || use.evidence != Evidence::kParameter) touches.push_back({wanted, use.access, use.evidence});
    }
    builder.run(op, touches);
  }
  builder.meta() = trace.data().meta;
  builder.losses() = trace.data().losses;
  return builder.finish();
}

}  // namespace tidepool
