#include "simulator/advise/micro_batches.hpp"

#include <algorithm>
#include <vector>

#include "simulator/advise/module_calls.hpp"
#include "simulator/advise/step_uses.hpp"
#include "traces/copied.hpp"

namespace tidepool {
namespace {

constexpr Bytes kLeastCut{512};  // a scalar, rounded up as PyTorch's allocator does

/// The forward and the backward pass of a step: positions [begin, end) in Trace::steps().
struct Passes {
  std::size_t begin = 0, end = 0;
};

std::optional<Passes> passes_of(const Trace& step) {
  const std::vector<ModuleCall> calls = module_calls(step);
  for (const ModuleCall& call : calls)
    if (call.pass.forward_end != calls.front().pass.forward_end) return {};
  Passes passes;
  bool begun = false;
  for (std::size_t i = 0; i < step.steps().size(); ++i) {
    if (step.steps()[i].kind != StepKind::kRun) continue;
    const Op& op = step.op(OpId{step.steps()[i].id});
    if (!begun && op.phase == Phase::kForward && !step.text(op.module).empty()) {
      passes.begin = allocations_for(step, i);
      begun = true;
    }
    if (begun && op.phase == Phase::kBackward) passes.end = i + 1;
  }
  if (passes.end == 0) return {};
  while (passes.end < step.steps().size() && step.steps()[passes.end].kind == StepKind::kFree) ++passes.end;
  return passes;
}

/// Which buffers and ops of the passes are of a part of the batch.
class Shares {
 public:
  Shares(const Trace& step, Passes passes)
      : step_{step}, uses_{step}, cut_(step.buffers().size()), cut_op_(step.ops().size()) {
    std::vector<bool> depends(step.buffers().size());
    for (std::size_t i = 0; i < depends.size(); ++i) {
      const Buffer& buffer = step.buffers()[i];
      const std::size_t alloc = uses_.of(BufferId{i}).alloc;
      const bool from_before = alloc == StepUses::kNowhere || alloc < passes.begin;
      depends[i] = from_before && !stays(buffer.kind) && step.text(buffer.name).empty();
    }
    for (std::size_t i = passes.begin; i < passes.end; ++i) {
      if (step.steps()[i].kind != StepKind::kRun) continue;
      const OpId id{step.steps()[i].id};
      bool of_batch = step.op(id).kind == OpKind::kSource;
      for (const Use& use : step.uses(id))
        of_batch = of_batch || (counts(step.uses(id), use) && depends[buffer_of(step, use).index()]);
      cut_op_[id.index()] = of_batch;
      if (!of_batch) continue;
      for (const Use& use : step.uses(id)) {
        const std::size_t made = buffer_of(step, use).index(), alloc = uses_.of(BufferId{made}).alloc;
        const Buffer& buffer = step.buffers()[made];
        if (!use.out.valid() || use.access == Access::kView || !step.text(buffer.name).empty()) continue;
        depends[made] = true;
        cut_[made] = buffer.kind != BufferKind::kWorkspace && buffer.size > kLeastCut && alloc >= passes.begin &&
                     alloc < passes.end;
      }
    }
    spare_gradients(passes);
    cut_workspaces(passes);
  }

  bool is_cut(BufferId buffer) const { return cut_[buffer.index()]; }
  bool is_cut(OpId op) const { return cut_op_[op.index()]; }
  const StepUses& uses() const { return uses_; }

 private:
  /// The workspace of an op grows with what it works on, but for cuBLAS's: that of aten::mm, addmm, bmm, or of a gemm.
  void cut_workspaces(Passes passes) {
    for (std::size_t i = passes.begin; i < passes.end; ++i) {
      const Step& step = step_.steps()[i];
      if (step.kind != StepKind::kAlloc || step_.buffers()[step.id].kind != BufferKind::kWorkspace) continue;
      const OpId op{step_.steps()[next_op(step_, i)].id};
      cut_[step.id] = is_cut(op) && step_.text(step_.op(op).name).find("mm") == std::string_view::npos;
    }
  }

  /// Gradients of parameters may be made in another precision first: only casts to them read those.
  void spare_gradients(Passes passes) {
    for (std::size_t i = passes.begin; i < passes.end; ++i) {
      if (step_.steps()[i].kind != StepKind::kRun) continue;
      const Buffer* made = nullptr;
      BufferId read;
      std::size_t uses = 0;
      for (const Use& use : step_.uses(OpId{step_.steps()[i].id})) {
        if (!counts(step_.uses(OpId{step_.steps()[i].id}), use) || use.access == Access::kView) continue;
        if (use.out.valid())
          made = &step_.buffer(buffer_of(step_, use));
        else
          read = buffer_of(step_, use);
        ++uses;
      }
      if (uses != 2 || made == nullptr || !read.valid() || !is_cut(read)) continue;
      if (made->kind != BufferKind::kGradient || step_.text(made->name).empty()) continue;
      if (step_.buffer(read).size <= made->size && uses_.of(read).uses.back().position == i) cut_[read.index()] = false;
    }
  }

  const Trace& step_;
  StepUses uses_;
  std::vector<bool> cut_;     // by buffer
  std::vector<bool> cut_op_;  // by op
};

/// Bytes per ns of the optimizer's ops; 0: there are none with a time.
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
  Writer(const Trace& step, Passes passes, int parts)
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
    for (const std::size_t gradient : gradients_) now_[gradient] = total_[gradient];
    for (std::size_t i = passes_.end; i < step_.steps().size(); ++i) whole(i);
    return builder_.finish();
  }

 private:
  void whole(std::size_t position) {
    const Step& step = step_.steps()[position];
    if (step.kind == StepKind::kAlloc) now_[step.id] = builder_.alloc(copied(builder_, step_, BufferId{step.id}));
    if (step.kind == StepKind::kFree) builder_.free(now_[step.id]);
    if (step.kind == StepKind::kRun) run(OpId{step.id}, 1);
  }

  void of_part(std::size_t position, int part) {
    const Step& step = step_.steps()[position];
    if (step.kind == StepKind::kAlloc) {
      const BufferId id{step.id};
      Buffer spec = copied(builder_, step_, id);
      if (shares_.is_cut(id)) spec.size = Bytes{(spec.size.count() + parts_ - 1) / parts_};
      if (part > 0 && outlasts(id) && !is_gradient(id)) replaced_.push_back(now_[step.id]);
      now_[step.id] = builder_.alloc(spec);
      if (is_gradient(id) && part == 0) {
        total_[step.id] = now_[step.id];
        gradients_.push_back(step.id);
      }
    }
    if (step.kind == StepKind::kFree && (part == 0 || is_made(BufferId{step.id}))) builder_.free(now_[step.id]);
    if (step.kind != StepKind::kRun) return;
    run(OpId{step.id}, shares_.is_cut(OpId{step.id}) ? parts_ : 1);
    for (const BufferId old : replaced_) builder_.free(old);
    replaced_.clear();
    if (part > 0) add_gradients(position);
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

  /// Gradients that are complete behind the op go into their sums.
  void add_gradients(std::size_t position) {
    for (const Use& use : step_.uses(OpId{step_.steps()[position].id})) {
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

  /// A gradient of a parameter that the passes make and the optimizer reads.
  bool is_gradient(BufferId id) const {
    const Buffer& buffer = step_.buffer(id);
    return buffer.kind == BufferKind::kGradient && !step_.text(buffer.name).empty() && outlasts(id) &&
           last_use(id) != StepUses::kNowhere;
  }
  /// The passes allocate it.
  bool is_made(BufferId id) const {
    const std::size_t alloc = shares_.uses().of(id).alloc;
    return alloc >= passes_.begin && alloc < passes_.end;
  }
  bool outlasts(BufferId id) const {
    const std::size_t free = shares_.uses().of(id).free;
    return is_made(id) && (free == StepUses::kNowhere || free >= passes_.end);
  }
  /// Within the passes.
  std::size_t last_use(BufferId id) const {
    std::size_t last = StepUses::kNowhere;
    for (const StepUses::At& at : shares_.uses().of(id).uses)
      if (at.position < passes_.end) last = at.position;
    return last;
  }

  const Trace& step_;
  Passes passes_;
  int parts_;
  Shares shares_;
  double rate_;  // bytes per ns
  TraceBuilder builder_;
  std::vector<BufferId> now_;           // by buffer
  std::vector<BufferId> total_;         // by buffer: where the gradients of all parts add up
  std::vector<std::size_t> gradients_;  // buffers with an entry in total_
  std::vector<BufferId> replaced_;      // end behind the next op
};

}  // namespace

std::optional<Trace> with_micro_batches(const Trace& step, int parts) {
  const std::optional<Passes> passes = passes_of(step);
  if (!passes) return {};
  return Writer{step, *passes, parts}.written();
}

}  // namespace tidepool
