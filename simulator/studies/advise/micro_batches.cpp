#include "simulator/studies/advise/micro_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "simulator/studies/advise/batch_shares.hpp"
#include "traces/builder.hpp"
#include "traces/copied.hpp"
#include "traces/program_names.hpp"
#include "traces/step/module_calls.hpp"

namespace tidepool {
namespace {

/// Whether an op of the optimizer changes a parameter.
bool changes_parameter(const Trace& step, OpId id) {
  if (step.op(id).phase != Phase::kOptimizer) return false;
  const auto uses = step.uses(id);
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    return use.out.valid() && use.access != Access::kView &&
           step.buffer(buffer_of(step, use)).kind == BufferKind::kParameter;
  });
}

std::optional<PassSpan> passes_of(const Trace& step) {
  const std::vector<ModuleCall> calls = module_calls(step);
  for (const ModuleCall& call : calls)
    if (call.pass.forward_end != calls.front().pass.forward_end) return {};
  PassSpan passes;
  bool begun = false, updated = false;
  for (std::size_t i = 0; i < step.events().size(); ++i) {
    if (step.events()[i].kind != EventKind::kRun) continue;
    const Op& op = step.op(OpId{step.events()[i].id});
    if (!begun && op.phase == Phase::kForward && !step.text(op.module).empty()) {
      passes.begin = allocations_for(step, i);
      begun = true;
    }
    updated = updated || (begun && changes_parameter(step, OpId{step.events()[i].id}));
    if (!begun || op.phase != Phase::kBackward) continue;
    if (updated) return {};
    passes.end = i + 1;
  }
  if (passes.end == 0) return {};
  while (passes.end < step.events().size() && step.events()[passes.end].kind == EventKind::kFree) ++passes.end;
  return passes;
}

/// Bytes per ns that the optimizer's ops read and write; 0: none of them has a time.
double optimizer_rate(const Trace& step) {
  double bytes = 0, time = 0;
  for (std::size_t i = 0; i < step.ops().size(); ++i) {
    if (step.ops()[i].phase != Phase::kOptimizer) continue;
    time += static_cast<double>(step.ops()[i].duration.count());
    for (const Use& use : step.uses(OpId{i}))
      bytes += static_cast<double>(step.buffer(buffer_of(step, use)).size.count()) *
               (static_cast<int>(use.in.valid()) + static_cast<int>(use.out.valid()));
  }
  return time > 0 ? bytes / time : 0;
}

/// Writes the changed step.
class Writer {
 public:
  Writer(const Trace& step, PassSpan passes, int parts)
      : step_{step},
        passes_{passes},
        parts_{parts},
        shares_{step, passes},
        rate_{optimizer_rate(step)},
        builder_{step.data().streams},
        now_(step.buffers().size()),
        total_(step.buffers().size()) {
    for (std::size_t i = 0; i < now_.size(); ++i)
      if (step.buffers()[i].born_before) now_[i] = builder_.existing(copied(builder_, step, BufferId{i}));
  }

  Trace written() {
    for (std::size_t i = 0; i < passes_.begin; ++i) whole(i);
    for (int part = 0; part < parts_; ++part)
      for (std::size_t i = passes_.begin; i < passes_.end; ++i) of_part(i, part);
    for (const std::uint32_t kept : kept_) builder_.free(now_[kept]);
    for (const std::size_t gradient : gradients_) now_[gradient] = total_[gradient];
    for (std::size_t i = passes_.end; i < step_.events().size(); ++i) whole(i);
    return builder_.finish();
  }

 private:
  void whole(std::size_t position) {
    const Event& event = step_.events()[position];
    if (event.kind == EventKind::kAlloc) now_[event.id] = builder_.alloc(copied(builder_, step_, BufferId{event.id}));
    if (event.kind == EventKind::kFree) builder_.free(now_[event.id]);
    if (event.kind == EventKind::kRun) run(OpId{event.id}, 1);
  }

  void of_part(std::size_t position, int part) {
    const Event& event = step_.events()[position];
    if (event.kind == EventKind::kAlloc) {
      const BufferId id{event.id};
      Buffer spec = copied(builder_, step_, id);
      if (shares_.is_cut(id)) spec.size = Bytes{(spec.size.count() + parts_ - 1) / parts_};
      if (part > 0 && outlasts(id) && !is_gradient(id)) replaced_.push_back(now_[event.id]);
      now_[event.id] = builder_.alloc(spec);
      if (is_gradient(id) && part == 0) {
        total_[event.id] = now_[event.id];
        gradients_.push_back(event.id);
      }
    }
    if (event.kind == EventKind::kFree) {
      if (is_made(BufferId{event.id}))
        builder_.free(now_[event.id]);
      else if (part == 0)
        free_from_before(event.id);
    }
    if (event.kind != EventKind::kRun) return;
    run(OpId{event.id}, shares_.is_cut(OpId{event.id}) ? parts_ : 1);
    for (const BufferId old : replaced_) builder_.free(old);
    replaced_.clear();
    if (part > 0) add_gradients(position);
  }

  /// Frees a buffer from before the passes now or, if the passes use it, when all parts have run.
  void free_from_before(std::uint32_t id) {
    const std::size_t last = last_use(BufferId{id});
    if (last != StepUses::kNowhere && last >= passes_.begin)
      kept_.push_back(id);
    else
      builder_.free(now_[id]);
  }

  void run(OpId id, int divisor) {
    Op op = copied(builder_, step_, id);
    op.duration = Nanos{op.duration.count() / divisor};
    std::vector<TraceBuilder::Touch> touches;
    for (const Use& use : step_.uses(id))
      if (const BufferId used = now_[buffer_of(step_, use).index()]; used.valid() && builder_.live(used))
        touches.push_back({used, use.access, use.evidence});
    builder_.run(op, touches);
  }

  /// Adds the gradients that are complete after the op to their sums.
  void add_gradients(std::size_t position) {
    for (const Use& use : step_.uses(OpId{step_.events()[position].id})) {
      const BufferId id = buffer_of(step_, use);
      if (!is_gradient(id) || last_use(id) != position || now_[id.index()] == total_[id.index()]) continue;
      const Buffer& gradient = step_.buffer(id);
      Op add{.name = builder_.text("aten::add_"), .phase = Phase::kBackward};
      if (rate_ > 0)
        add.duration = Nanos{static_cast<std::int64_t>(3.0 * static_cast<double>(gradient.size.count()) / rate_)};
      builder_.run(add, {{now_[id.index()], Access::kRead, Evidence::kSchema},
                         {total_[id.index()], Access::kReadWrite, Evidence::kSchema}});
      builder_.free(now_[id.index()]);
      now_[id.index()] = total_[id.index()];
    }
  }

  /// Whether the buffer is the gradient of a parameter, and the passes make it and do not free it.
  bool is_gradient(BufferId id) const {
    const Buffer& buffer = step_.buffer(id);
    return buffer.kind == BufferKind::kGradient && !step_.text(buffer.name).empty() && outlasts(id) &&
           last_use(id) != StepUses::kNowhere;
  }
  /// Whether the passes allocate the buffer.
  bool is_made(BufferId id) const {
    const std::size_t alloc = shares_.uses().of(id).alloc;
    return alloc >= passes_.begin && alloc < passes_.end;
  }
  bool outlasts(BufferId id) const {
    const std::size_t free = shares_.uses().of(id).free;
    return is_made(id) && (free == StepUses::kNowhere || free >= passes_.end);
  }
  /// The position of the last use before the end of the passes.
  std::size_t last_use(BufferId id) const {
    std::size_t last = StepUses::kNowhere;
    for (const StepUses::At& at : shares_.uses().of(id).uses)
      if (at.position < passes_.end) last = at.position;
    return last;
  }

  const Trace& step_;
  PassSpan passes_;
  int parts_;
  BatchShares shares_;
  double rate_;  // bytes per ns
  TraceBuilder builder_;
  std::vector<BufferId> now_;           // by buffer: the buffer in the changed step
  std::vector<BufferId> total_;         // by buffer: where the gradients of all parts add up
  std::vector<std::size_t> gradients_;  // buffers with an entry in total_
  std::vector<BufferId> replaced_;      // freed after the next op
  std::vector<std::uint32_t> kept_;     // buffers from before the passes that are freed when all parts have run
};

}  // namespace

std::optional<Trace> with_micro_batches(const Trace& step, int parts) {
  const std::optional<PassSpan> passes = passes_of(step);
  if (!passes || BatchShares{step, *passes}.joining_op().valid()) return {};
  return Writer{step, *passes, parts}.written();
}

std::string no_micro_batches(const Trace& step) {
  const std::optional<PassSpan> passes = passes_of(step);
  const OpId op = passes ? BatchShares{step, *passes}.joining_op() : OpId{};
  if (!op.valid()) return "";
  return fmt::format(
      "{} picks rows of one input by another, as the edges of a graph pick nodes, so a part of each "
      "input is no smaller batch",
      op_text(step, op));
}

}  // namespace tidepool
