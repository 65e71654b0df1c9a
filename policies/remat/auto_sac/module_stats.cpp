#include "policies/remat/auto_sac/module_stats.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace tidepool {
namespace {

constexpr std::int64_t kGranule = 512;  // bytes; PyTorch's allocator rounds sizes up to multiples of it

Bytes rounded(Bytes size) { return Bytes{(size.count() + kGranule - 1) / kGranule * kGranule}; }

const Op* op_at(const Trace& trace, std::size_t position) {
  const Event& event = trace.events()[position];
  return event.kind == EventKind::kRun ? &trace.op(OpId{event.id}) : nullptr;
}

bool within(const Op& op, const Trace& trace, const std::string& path) {
  return path.empty() || lies_in(trace.text(op.module), path);
}

/// Live bytes by kind; entry i is before entry i of Trace::steps().
struct LiveBytes {
  std::vector<Bytes> activations, gradients, temporary, all;

  explicit LiveBytes(const Trace& trace) {
    std::vector<std::size_t> freed(trace.buffers().size(), trace.events().size());
    std::size_t last_backward = 0;
    for (std::size_t i = 0; i < trace.events().size(); ++i) {
      if (trace.events()[i].kind == EventKind::kFree) freed[trace.events()[i].id] = i;
      if (const Op* op = op_at(trace, i); op != nullptr && op->phase == Phase::kBackward) last_backward = i;
    }
    while (last_backward + 1 < trace.events().size() && trace.events()[last_backward + 1].kind == EventKind::kFree)
      ++last_backward;
    enum class What { kOther, kActivation, kGradient, kTemporary };
    std::vector<What> what(trace.buffers().size(), What::kOther);
    std::map<What, Bytes> live;
    for (std::size_t b = 0; b < what.size(); ++b)
      if (trace.buffers()[b].born_before) {
        if (trace.buffers()[b].kind == BufferKind::kGradient) what[b] = What::kGradient;
        live[what[b]] += trace.buffers()[b].size;
      }
    Phase phase = Phase::kUnknown;
    for (std::size_t i = 0; i < trace.events().size(); ++i) {
      activations.push_back(live[What::kActivation]);
      gradients.push_back(live[What::kGradient]);
      temporary.push_back(live[What::kTemporary]);
      all.push_back(activations.back() + gradients.back() + temporary.back() + live[What::kOther]);
      const Event& event = trace.events()[i];
      if (const Op* op = op_at(trace, i)) phase = op->phase;
      if (event.kind == EventKind::kFree) live[what[event.id]] -= trace.buffers()[event.id].size;
      if (event.kind != EventKind::kAlloc) continue;
      const OpId user = trace.allocated_for(i);
      const Phase made_in = user.valid() ? trace.op(user).phase : phase;
      what[event.id] = made_in == Phase::kForward        ? What::kActivation
                       : made_in != Phase::kBackward     ? What::kOther
                       : freed[event.id] > last_backward ? What::kGradient
                                                         : What::kTemporary;
      live[what[event.id]] += trace.buffers()[event.id].size;
    }
  }
};

/// Bytes that a call hands on: its outputs that later forward ops read, or else the output of its last op.
Bytes output_of(const Trace& trace, const ModuleCall& call, const CallRegion& region) {
  Bytes handed_on, last;
  for (std::size_t i = 0; i < region.ops.size(); ++i)
    for (const VersionId v : trace.made(region.ops[i])) {
      if (i == region.last) last += trace.size(v);
      const auto& readers = trace.readers(v);
      if (std::any_of(readers.begin(), readers.end(), [&](OpId reader) {
            const std::size_t at = trace.position(reader);
            return at >= call.behind && at < call.pass.forward_end;
          }))
        handed_on += trace.size(v);
    }
  return handed_on > Bytes{} ? handed_on : last;
}

ModuleStats stats_of(const Trace& trace, const LiveBytes& live, const ModuleCall& call) {
  ModuleStats stats;
  stats.path = call.module;
  const CallRegion region = region_of(trace, call);
  for (const SelectiveOp& op : region.region.ops) {
    stats.made += op.memory;
    stats.runtime += op.runtime;
  }
  stats.tradeoff = tradeoff_of(region.region);
  std::size_t end = call.behind;  // the call's local variables are freed when it returns
  while (end + 1 < trace.events().size() && trace.events()[end].kind == EventKind::kFree) ++end;
  end = std::min(end, trace.events().size() - 1);
  stats.alive = live.activations[end];
  stats.saved = std::max(stats.alive - live.activations[call.first] - output_of(trace, call, region), Bytes{});
  std::size_t begin = trace.events().size(), peak = begin;
  for (std::size_t i = call.pass.forward_end; i < call.pass.backward_end; ++i) {
    const Op* op = op_at(trace, i);
    if (op == nullptr || op->phase != Phase::kBackward || !within(*op, trace, call.module)) continue;
    if (begin == trace.events().size()) begin = peak = allocations_for(trace, i);
    if (live.all[i] > live.all[peak]) peak = i;
  }
  if (begin == trace.events().size()) return stats;
  stats.gradients = live.gradients[begin];
  stats.temporary = std::max(live.temporary[peak] - live.temporary[begin], Bytes{});
  return stats;
}

}  // namespace

std::vector<CalledModule> called_modules(const Trace& trace) {
  std::vector<CalledModule> modules;
  CalledModule model;
  for (ModuleCall& call : module_calls(trace)) {
    if (modules.empty() || modules.back().path != call.module) modules.push_back({call.module, {}});
    const std::size_t pass = modules.back().calls.size();
    if (model.calls.size() == pass) model.calls.push_back({"", call.first, call.behind, call.pass});
    model.calls[pass].first = std::min(model.calls[pass].first, call.first);
    model.calls[pass].behind = std::max(model.calls[pass].behind, call.behind);
    modules.back().calls.push_back(std::move(call));
  }
  if (modules.empty()) return {};
  modules.push_back(std::move(model));
  std::sort(modules.begin(), modules.end(), [](const CalledModule& a, const CalledModule& b) {
    const std::size_t first_a = a.calls.front().first, first_b = b.calls.front().first;
    return first_a != first_b ? first_a < first_b : a.path.size() < b.path.size();
  });
  return modules;
}

CallRegion region_of(const Trace& trace, const ModuleCall& call) {
  CallRegion found;
  std::map<BufferId, std::size_t> maker;  // by buffer: the first op of the call that writes to it
  bool has_input = false;
  for (std::size_t i = call.first; i < call.behind; ++i) {
    const Op* op = op_at(trace, i);
    if (op == nullptr || op->phase != Phase::kForward) continue;
    const OpId id{trace.events()[i].id};
    const std::size_t index = found.ops.size();
    SelectiveOp one{.memory = {}, .runtime = op->duration, .view = false, .random = op->random, .updates = {}};
    for (const Use& use : trace.uses(id)) {
      one.view |= use.access == Access::kView;
      if (!use.in.valid()) continue;
      const BufferId buffer = trace.version(use.in).buffer;
      has_input |= !maker.contains(buffer) && trace.buffer(buffer).kind != BufferKind::kParameter;
    }
    for (const VersionId v : trace.made(id)) {
      one.view = false;
      one.memory += rounded(trace.size(v));
      const auto [entry, is_new] = maker.try_emplace(trace.version(v).buffer, index);
      if (trace.version(v).parent.valid()) one.updates = entry->second;
    }
    if (!one.view && !one.updates) found.last = index;
    found.region.ops.push_back(one);
    found.ops.push_back(id);
  }
  found.region.keep_random = !has_input;
  if (!found.ops.empty()) found.region.ops[found.last].memory = Bytes{};
  return found;
}

std::vector<StraightLine> tradeoff_of(const SelectiveRegion& region) {
  const SelectiveOrder order = order_of(region);
  Bytes memory;
  Nanos runtime;
  for (const SelectiveOp& op : region.ops) memory += op.memory, runtime += op.runtime;
  if (memory == Bytes{} || runtime == Nanos{}) return {};
  constexpr double kShift = 0.01;  // the curve is shifted to the right by this
  std::vector<CurvePoint> curve;
  Bytes given_up;
  Nanos again;
  const auto add = [&](const SelectiveGroup& group) {
    given_up += group.memory;
    again += group.runtime;
    const CurvePoint point{static_cast<double>(given_up.count()) / static_cast<double>(memory.count()) + kShift,
                           static_cast<double>(again.count()) / static_cast<double>(runtime.count())};
    if (!curve.empty() && curve.back().x == point.x)
      curve.back() = point;
    else
      curve.push_back(point);
  };
  add(order.always);
  for (const SelectiveGroup& group : order.given_up) add(group);
  add(order.never);
  // Each point takes the time of the next one, so that the fit is too high rather than too low.
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) curve[i].y = curve[i + 1].y;
  if (curve.size() > 1) curve.pop_back();
  return fit_lines(curve, curve.size() > 3 ? 2 : 1);
}

ModelStats model_stats(const Trace& trace, const std::vector<CalledModule>& modules) {
  const LiveBytes live{trace};
  ModelStats model;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.kind == BufferKind::kParameter) model.parameters += buffer.size;
  for (const CalledModule& module : modules) model.modules.push_back(stats_of(trace, live, module.calls.front()));
  for (std::size_t i = 0; i < modules.size(); ++i) {
    // A module comes before those that it contains.
    const bool has_next = i + 1 < modules.size();
    model.modules[i].leaf = !modules[i].path.empty() && !(has_next && lies_in(modules[i + 1].path, modules[i].path));
  }
  std::vector<std::size_t> order(modules.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const std::size_t end_a = modules[a].calls.front().behind, end_b = modules[b].calls.front().behind;
    return end_a != end_b ? end_a < end_b : modules[a].path.size() > modules[b].path.size();
  });
  for (std::size_t place = 0; place < order.size(); ++place)
    model.modules[order[place]].returned = static_cast<std::uint32_t>(place);
  return model;
}

}  // namespace tidepool
