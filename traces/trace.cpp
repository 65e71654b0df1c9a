#include "traces/trace.hpp"

#include <utility>

#include "traces/trace_check.hpp"
#include "traces/trace_hash.hpp"

namespace tidepool {
namespace {

/// Compressed rows: row i has the ops that `visit` gives with key i, each once, in the order of giving. `visit` is
/// called twice with a function of (key, op) and gives the same both times; equal pairs follow each other within a row.
template <class Visit>
void make_rows(std::size_t rows, std::vector<OpId>& values, std::vector<std::uint32_t>& start, Visit visit) {
  std::vector<OpId> last;
  const auto each_once = [&](auto action) {
    last.assign(rows, OpId{});
    visit([&](std::size_t key, OpId value) {
      if (last[key] == value) return;
      last[key] = value;
      action(key, value);
    });
  };
  // Counted two places further on, summed up, then filled one place further on: each start ends where its row begins.
  start.assign(rows + 2, 0);
  each_once([&](std::size_t key, OpId) { ++start[key + 2]; });
  for (std::size_t i = 0; i < rows; ++i) start[i + 2] += start[i + 1];
  values.resize(start[rows + 1]);
  each_once([&](std::size_t key, OpId value) { values[start[key + 1]++] = value; });
  start.pop_back();
}

}  // namespace

Trace::Trace(TraceData data) : data_{std::move(data)} {
  check_records(data_);
  ideal_peak_ = check_program(data_);
  index();
  hash_ = trace_hash(data_);
}

void Trace::index() {
  const TraceData& d = data_;
  first_version_.resize(d.buffers.size());
  for (std::size_t i = d.versions.size(); i-- > 0;)
    if (d.versions[i].kind != VersionKind::kView) first_version_[d.versions[i].buffer.index()] = VersionId{i};
  // An initial version may have been noted after a write of another buffer, but never after one of its own buffer.

  make_rows(d.versions.size(), readers_, reader_start_, [&](auto add) {
    for (std::size_t i = 0; i < d.ops.size(); ++i)
      for (const Use& use : uses(OpId{i}))
        if (use.in.valid()) add(root(use.in).index(), OpId{i});
  });
  make_rows(d.versions.size(), viewers_, viewer_start_, [&](auto add) {
    for (std::size_t i = 0; i < d.ops.size(); ++i)
      for (const Use& use : uses(OpId{i}))
        if (use.access == Access::kView) add(root(use.out).index(), OpId{i});
  });

  made_start_.assign(1, 0);
  std::vector<std::uint8_t> made(d.versions.size());
  for (std::size_t i = 0; i < d.ops.size(); ++i) {
    for (const Use& use : uses(OpId{i})) {
      if (!use.out.valid() || use.access == Access::kView || made[use.out.index()]) continue;
      made[use.out.index()] = 1;
      made_.push_back(use.out);
    }
    made_start_.push_back(static_cast<std::uint32_t>(made_.size()));
  }

  position_.resize(d.ops.size());
  allocated_for_.resize(d.steps.size());
  OpId next;
  for (std::size_t i = d.steps.size(); i-- > 0;) {
    if (d.steps[i].kind == StepKind::kRun) {
      next = OpId{d.steps[i].id};
      position_[next.index()] = static_cast<std::uint32_t>(i);
    } else if (d.steps[i].kind == StepKind::kAlloc) {
      allocated_for_[i] = next;
    } else {
      next = OpId{};
    }
  }
}

}  // namespace tidepool
