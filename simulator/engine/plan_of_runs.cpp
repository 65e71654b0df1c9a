#include "simulator/engine/plan_of_runs.hpp"

#include <algorithm>
#include <cstdint>

namespace tidepool {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// The life of a run's output: from its run to the end of the run `last`.
struct Life {
  VersionId version;
  std::size_t last = 0;     ///< kNone: to the end of the step
  bool comes_back = false;  ///< a later run writes the version again
};

/// The lives of all outputs, in the order of the runs.
std::vector<Life> lives_of(const Trace& trace, std::span<const OpId> runs) {
  std::vector<Life> lives;
  std::vector<std::size_t> current(trace.versions().size(), kNone);  // by version: index in lives
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Use& use : trace.uses(runs[i]))
      if (use.in.valid() && current[use.in.index()] != kNone) lives[current[use.in.index()]].last = i;
    for (const VersionId made : trace.made(runs[i])) {
      if (current[made.index()] != kNone) lives[current[made.index()]].comes_back = true;
      current[made.index()] = lives.size();
      lives.push_back({made, i});
    }
  }
  for (const VersionId output : trace.outputs())
    if (current[output.index()] != kNone) lives[current[output.index()]].last = kNone;
  return lives;
}

}  // namespace

bool writes_anew(const Trace& trace) {
  if (trace.data().streams.size() > 1) return false;
  const auto anew = [](const Use& use) {
    return use.access == Access::kRead ? use.in.valid() : use.access == Access::kWrite;
  };
  const auto runs_again = [](const Op& op) { return op.kind != OpKind::kSource; };
  const auto first = [&](const Version& version) {
    const bool initial = version.kind == VersionKind::kInitial;
    return initial ? trace.buffer(version.buffer).born_before
                   : version.kind == VersionKind::kWrite && !version.parent.valid();
  };
  return std::all_of(trace.data().uses.begin(), trace.data().uses.end(), anew) &&
         std::all_of(trace.ops().begin(), trace.ops().end(), runs_again) &&
         std::all_of(trace.versions().begin(), trace.versions().end(), first);
}

Plan plan_of_runs(const Trace& trace, std::span<const OpId> runs) {
  const std::vector<Life> lives = lives_of(trace, runs);
  std::vector<std::vector<std::size_t>> ends(runs.size());  // by run: indices of the lives that end with it
  for (std::size_t i = 0; i < lives.size(); ++i)
    if (lives[i].last != kNone) ends[lives[i].last].push_back(i);
  Plan plan;
  std::size_t next = 0;  // op of the program
  const auto act = [&](Verb verb, std::uint32_t subject, Bytes size = {}) {
    const OpId before = next < trace.ops().size() ? OpId{next} : OpId{};
    plan.actions.push_back({verb, before, subject, verb == Verb::kAlloc ? kNoAddress : Bytes{}, size});
  };
  const auto alloc = [&](VersionId v) { act(Verb::kAlloc, v.value(), trace.size(v)); };
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (trace.buffers()[i].born_before) alloc(trace.first_version(BufferId{i}));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const VersionId made : trace.made(runs[i])) alloc(made);
    act(Verb::kRun, runs[i].value());
    if (runs[i].index() == next) ++next;
    for (const std::size_t end : ends[i])
      act(lives[end].comes_back ? Verb::kDrop : Verb::kFree, lives[end].version.value());
  }
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (const Buffer& buffer = trace.buffers()[i]; buffer.born_before && !buffer.outlives)
      act(Verb::kFree, trace.first_version(BufferId{i}).value());
  return plan;
}

}  // namespace tidepool
