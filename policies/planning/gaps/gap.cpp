#include "policies/planning/gaps/gap.hpp"

#include <algorithm>
#include <map>

#include "simulator/run_spec.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kNoOp = ~std::uint32_t{0};

/// The state of a buffer during the walk through the step.
struct Walk {
  VersionId content;
  std::uint32_t first_read = kNoOp;  // op; kNoOp if no op has used the buffer, or if the first one overwrites it
  std::uint32_t last = kNoOp;        // op
};

/// One of two paired buffers of the same size: the last content of the first, with its last use, or the initial content
/// of the second, with its first read. The first continues as the second in the next iteration.
struct End {
  std::uint32_t op;
  VersionId version;
  bool operator<(const End& other) const { return op != other.op ? op < other.op : version < other.version; }
};
struct Ends {
  std::vector<End> released, due;
};

bool is_brought(const Trace& trace, VersionId v) {
  const OpId producer = trace.version(v).producer;
  return !producer.valid() || trace.op(producer).kind == OpKind::kSource;
}

}  // namespace

std::vector<Gap> find_gaps(const Trace& trace, Bytes least, const Assumptions& assume) {
  const auto ops = static_cast<std::uint32_t>(trace.ops().size());
  std::vector<Walk> walks(trace.buffers().size());
  std::vector<Gap> gaps;
  for (std::uint32_t op = 0; op < ops; ++op) {
    const std::span uses = trace.uses(OpId{op});
    for (const Use& use : uses) {
      if (!use.in.valid()) continue;
      const VersionId version = trace.root(use.in);
      const Buffer& buffer = trace.buffer(trace.version(version).buffer);
      if (buffer.size < least || buffer.size <= Bytes{}) continue;
      Walk& walk = walks[trace.version(version).buffer.index()];
      if (walk.last == kNoOp)
        walk.first_read = op;
      else if (op > walk.last + 1 && walk.content == version)
        gaps.push_back({version, version, buffer.size, walk.last, op, false});
      walk.content = version;
      walk.last = op;
    }
    for (const VersionId made : trace.made(OpId{op})) {
      Walk& walk = walks[trace.version(made).buffer.index()];
      walk.content = made;
      walk.last = op;
    }
  }
  std::map<Bytes, Ends> carried;  // by size
  for (std::size_t i = 0; i < walks.size(); ++i) {
    const Buffer& buffer = trace.buffers()[i];
    const Walk& walk = walks[i];
    if (buffer.size < least || buffer.size <= Bytes{} || walk.last == kNoOp) continue;
    const bool released = buffer.outlives && walk.last + 1 < ops;
    const VersionId first = trace.first_version(BufferId{i});
    const bool due = buffer.born_before && walk.first_read != kNoOp;
    if (released && due) {
      gaps.push_back({walk.content, first, buffer.size, walk.last, ops + walk.first_read, true});
    } else if (released && !buffer.born_before) {
      carried[buffer.size].released.push_back({walk.last, walk.content});
    } else if (due && !buffer.outlives) {
      carried[buffer.size].due.push_back({walk.first_read, first});
    }
  }
  for (auto& [size, ends] : carried) {
    std::sort(ends.released.begin(), ends.released.end());
    std::sort(ends.due.begin(), ends.due.end());
    for (std::size_t i = 0; i < std::min(ends.released.size(), ends.due.size()); ++i)
      gaps.push_back(
          {ends.released[i].version, ends.due[i].version, size, ends.released[i].op, ops + ends.due[i].op, true});
  }
  for (Gap& gap : gaps) {
    const OpId producer = trace.version(gap.out).producer;
    const BufferId buffer = trace.version(gap.out).buffer;
    if (producer.valid())
      gap.made = producer.value();
    else if (trace.buffer(buffer).outlives && walks[buffer.index()].content == gap.out)
      gap.made = Gap::kUnchanged;
    if (const VersionId last = walks[buffer.index()].content; gap.made == Gap::kBefore && trace.buffer(buffer).outlives)
      gap.renewed = last, gap.renewed_by = trace.version(last).producer.value();
  }
  std::sort(gaps.begin(), gaps.end(), [ops](const Gap& a, const Gap& b) {
    return a.due % ops != b.due % ops ? a.due % ops < b.due % ops : a.in < b.in;
  });
  if (assume.pin_sources)
    std::erase_if(gaps, [&](const Gap& gap) { return is_brought(trace, gap.out) || is_brought(trace, gap.in); });
  return gaps;
}

std::vector<Gap> find_gaps_of_run(const Trace& trace, Bytes least, const StepCircle& circle, const RunSpec& spec) {
  std::vector<Gap> gaps = find_gaps(trace, least, spec.assume);
  if (spec.iterations > 1) return gaps;
  const auto ops = static_cast<std::uint32_t>(circle.size());
  std::uint32_t fits_from = ops;  // the op from which on the load fits the capacity
  while (fits_from > 0 && circle.load[fits_from - 1] <= spec.capacity) --fits_from;
  for (Gap& gap : gaps) {
    gap.renewed = {};  // no iteration follows
    if (gap.made == Gap::kUnchanged) gap.made = Gap::kBefore;
    if (gap.crosses && gap.release + 1 >= fits_from) {
      gap.out = gap.in;
      gap.release = ops - 1;
      gap.made = Gap::kUnchanged;
    }
  }
  std::erase_if(gaps, [](const Gap& gap) { return gap.due == gap.release + 1; });
  return gaps;
}

}  // namespace tidepool
