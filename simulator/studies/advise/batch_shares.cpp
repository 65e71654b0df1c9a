#include "simulator/studies/advise/batch_shares.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace tidepool {
namespace {

constexpr Bytes kLeastCut{512};  // buffers of at most a scalar's block in PyTorch's allocator are not cut

/// Whether an operator picks rows of a tensor, or adds to them, by an index or a sparse matrix.
bool picks_rows(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"index_select", "index_add", "scatter", "sparse", "segment_reduce"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace

BatchShares::BatchShares(const Trace& step, PassSpan passes)
    : step_{step}, uses_{step}, cut_(step.buffers().size()), cut_op_(step.ops().size()) {
  find_cut(passes);
  spare_gradients(passes);
  cut_workspaces(passes);
}

void BatchShares::find_cut(PassSpan passes) {
  std::vector<bool> depends(step_.buffers().size());
  for (std::size_t i = 0; i < depends.size(); ++i) {
    const Buffer& buffer = step_.buffers()[i];
    const std::size_t alloc = uses_.of(BufferId{i}).alloc;
    const bool from_before = alloc == StepUses::kNowhere || alloc < passes.begin;
    depends[i] = from_before && !stays(buffer.kind) && step_.text(buffer.name).empty();
  }
  for (std::size_t i = passes.begin; i < passes.end; ++i) {
    if (step_.events()[i].kind != EventKind::kRun) continue;
    const OpId id{step_.events()[i].id};
    bool of_batch = step_.op(id).kind == OpKind::kSource;
    for (const Use& use : step_.uses(id))
      of_batch = of_batch || (counts(step_.uses(id), use) && depends[buffer_of(step_, use).index()]);
    cut_op_[id.index()] = of_batch;
    if (!of_batch) continue;
    if (!joining_op_.valid() && picks_rows(step_.text(step_.op(id).name))) {
      std::set<std::size_t> read;
      for (const Use& use : step_.uses(id))
        if (const std::size_t buffer = buffer_of(step_, use).index(); use.in.valid() && depends[buffer])
          read.insert(buffer);
      if (read.size() > 1) joining_op_ = id;
    }
    for (const Use& use : step_.uses(id)) {
      const BufferId made = buffer_of(step_, use);
      const Buffer& buffer = step_.buffer(made);
      if (!use.out.valid() || use.access == Access::kView || !step_.text(buffer.name).empty()) continue;
      depends[made.index()] = true;
      const std::size_t alloc = uses_.of(made).alloc;
      cut_[made.index()] = buffer.size > kLeastCut && alloc >= passes.begin && alloc < passes.end;
    }
  }
}

/// Keeps the size of a gradient before its cast to the parameter's precision, too. Such a buffer is not larger than the
/// gradient, and its last use is an op that makes the gradient from this buffer alone.
void BatchShares::spare_gradients(PassSpan passes) {
  for (std::size_t i = passes.begin; i < passes.end; ++i) {
    if (step_.events()[i].kind != EventKind::kRun) continue;
    const OpId id{step_.events()[i].id};
    const Buffer* made = nullptr;
    BufferId read;
    std::size_t uses = 0;
    for (const Use& use : step_.uses(id)) {
      if (!counts(step_.uses(id), use) || use.access == Access::kView) continue;
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

/// Cuts the workspaces of ops that work on the batch, except those of cuBLAS. A workspace counts as cuBLAS's if its op
/// has "mm" in its name (aten::mm, addmm, bmm, and gemm kernels).
void BatchShares::cut_workspaces(PassSpan passes) {
  for (std::size_t i = passes.begin; i < passes.end; ++i) {
    const Event& event = step_.events()[i];
    if (event.kind != EventKind::kAlloc || step_.buffers()[event.id].kind != BufferKind::kWorkspace) continue;
    const OpId op{step_.events()[next_op(step_, i)].id};
    cut_[event.id] = is_cut(op) && step_.buffers()[event.id].size > kLeastCut &&
                     step_.text(step_.op(op).name).find("mm") == std::string_view::npos;
  }
}

}  // namespace tidepool
