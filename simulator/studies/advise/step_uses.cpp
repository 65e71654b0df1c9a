#include "simulator/studies/advise/step_uses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "simulator/registry.hpp"
#include "simulator/solvers/packing/lifetimes.hpp"
#include "simulator/solvers/packing/pack.hpp"

namespace tidepool {

namespace {

/// Whether an op runs in steps [begin, end).
bool runs_between(const Trace& trace, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i)
    if (trace.events()[i].kind == EventKind::kRun) return true;
  return false;
}

/// A path with its numbers replaced: "transformer.h.*.mlp" for transformer.h.3.mlp.
std::string without_numbers(const std::string& path) {
  std::string pattern;
  for (std::size_t i = 0; i < path.size();) {
    const std::size_t end = std::min(path.find('.', i), path.size());
    const std::string part = path.substr(i, end - i);
    pattern += part.find_first_not_of("0123456789") == std::string::npos ? "*" : part;
    if (end < path.size()) pattern += '.';
    i = end + 1;
  }
  return pattern;
}

}  // namespace

bool counts(std::span<const Use> uses, const Use& use) {
  return use.evidence != Evidence::kParameter ||
         std::none_of(uses.begin(), uses.end(), [](const Use& other) { return other.evidence == Evidence::kSchema; });
}

BufferId buffer_of(const Trace& trace, const Use& use) {
  return trace.version(use.in.valid() ? use.in : use.out).buffer;
}

bool stays(BufferKind kind) {
  return kind == BufferKind::kParameter || kind == BufferKind::kGradient || kind == BufferKind::kOptimizerState;
}

std::size_t next_op(const Trace& trace, std::size_t position) {
  while (trace.events()[position].kind != EventKind::kRun) ++position;
  return position;
}

StepUses::StepUses(const Trace& trace)
    : lives_(trace.buffers().size(), Life{kNowhere, kNowhere, {}}), backward_{trace} {
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    const Event& event = trace.events()[i];
    if (event.kind == EventKind::kAlloc) lives_[event.id].alloc = i;
    if (event.kind == EventKind::kFree) lives_[event.id].free = i;
    if (event.kind != EventKind::kRun) continue;
    const std::span uses = trace.uses(OpId{event.id});
    for (const Use& use : uses) {
      if (!counts(uses, use)) continue;
      std::vector<At>& at = lives_[buffer_of(trace, use).index()].uses;
      const bool guessed = use.evidence == Evidence::kParameter || use.evidence == Evidence::kInferred;
      const bool writes = use.out.valid() && use.access != Access::kView && !guessed;
      if (at.empty() || at.back().position != i) at.push_back({i, writes});
      at.back().writes = at.back().writes || writes;
    }
  }
  find_casts(trace);
  find_ops_from_parameters(trace);
}

void StepUses::find_ops_from_parameters(const Trace& trace) {
  from_parameters_.resize(trace.events().size());
  gathered_.resize(trace.buffers().size());
  std::vector<bool> known(trace.versions().size(), true);  // what no op has written counts, since nothing is in it
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (const Buffer& buffer = trace.buffers()[i]; buffer.born_before && buffer.kind != BufferKind::kParameter)
      known[trace.first_version(BufferId{i}).index()] = false;
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind != EventKind::kRun) continue;
    const OpId op{trace.events()[i].id};
    const std::span uses = trace.uses(op);
    const auto reads = [&](const Use& use) { return counts(uses, use) && use.in.valid(); };
    const bool all = std::any_of(uses.begin(), uses.end(), reads)
                         ? std::all_of(uses.begin(), uses.end(),
                                       [&](const Use& use) { return !reads(use) || known[use.in.index()]; })
                         : trace.text(trace.op(op).name).starts_with("aten::empty");
    from_parameters_[i] = all;
    const bool gathers =
        all && (trace.op(op).kind == OpKind::kCollective || std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
                  return reads(use) && gathered_[buffer_of(trace, use).index()];
                }));
    for (const Use& use : uses) {
      if (!use.out.valid()) continue;
      known[use.out.index()] = all;
      if (gathers && !trace.buffer(buffer_of(trace, use)).born_before) gathered_[buffer_of(trace, use).index()] = true;
    }
  }
}

void StepUses::find_casts(const Trace& trace) {
  is_cast_.resize(lives_.size());
  std::size_t end = 0;  // latest known position at which autocast ends
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    const Event& event = trace.events()[i];
    if (event.kind == EventKind::kFree && is_cast_[event.id]) {
      const std::size_t last = lives_[event.id].uses.back().position;
      const Op& user = trace.op(OpId{trace.events()[last].id});
      // Backward frees its casts one by one. Other casts that outlive the module's call were held by autocast.
      if (user.phase == Phase::kForward && runs_between(trace, behind_call(trace, trace.text(user.module), last), i))
        end = i;
    }
    if (event.kind != EventKind::kRun) continue;
    const Op& op = trace.op(OpId{event.id});
    if (op.phase == Phase::kBackward && end > 0) autocast_ends_.push_back(std::exchange(end, 0));
    if (op.phase != Phase::kForward) continue;
    const Buffer* read = nullptr;
    BufferId made;
    std::size_t reads = 0;
    for (const Use& use : trace.uses(OpId{event.id})) {
      const BufferId buffer = buffer_of(trace, use);
      const Life& life = of(buffer);
      if (!counts(trace.uses(OpId{event.id}), use) || use.access == Access::kView) continue;
      if (life.alloc != kNowhere && life.alloc < i && next_op(trace, life.alloc) == i)
        made = buffer;
      else
        read = &trace.buffer(buffer), ++reads;
    }
    if (made.valid() && reads == 1 && read->kind == BufferKind::kParameter && trace.buffer(made).size <= read->size)
      is_cast_[made.index()] = true;
  }
}

std::size_t StepUses::released(const Trace& trace, BufferId buffer, std::size_t position) const {
  const auto module_at = [&](std::size_t at) { return trace.text(trace.op(OpId{trace.events()[at].id}).module); };
  if (of(buffer).alloc == kNowhere) return position;
  if (is_cast_[buffer.index()]) {
    const auto end = std::lower_bound(autocast_ends_.begin(), autocast_ends_.end(), position);
    if (end != autocast_ends_.end()) return *end;
  }
  std::string_view outermost = module_at(position);
  const std::string_view maker = module_at(next_op(trace, of(buffer).alloc));
  if (outermost.empty() || lies_in(maker, outermost)) return position;
  for (std::size_t dot = outermost.rfind('.'); dot != std::string_view::npos; dot = outermost.rfind('.', dot - 1)) {
    if (lies_in(maker, outermost.substr(0, dot))) break;
    outermost = outermost.substr(0, dot);
    if (dot == 0) break;
  }
  return behind_call(trace, outermost, position) - 1;
}

Bytes allocated_peak(const Trace& step) {
  constexpr int kSteps = 2;  // the second step begins with the blocks that the first one left in the cache
  const PoolInfo& pool = find_pool("pytorch");
  return pack(repeat_lifetimes(step, kSteps), pool, Options{pool.name, pool.options, {}}, {}).placed;
}

std::vector<std::vector<std::size_t>> module_families(const std::vector<std::string>& paths) {
  std::map<std::string, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    found[without_numbers(paths[i])].push_back(i);
    found[fmt::format("depth {}", std::count(paths[i].begin(), paths[i].end(), '.'))].push_back(i);
  }
  std::vector<std::vector<std::size_t>> families;
  for (auto& [pattern, family] : found) families.push_back(std::move(family));
  return families;
}

}  // namespace tidepool
