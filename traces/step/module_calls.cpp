#include "traces/step/module_calls.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace tidepool {
namespace {

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('.')); }

/// Visits a module and the modules around it, innermost first, without the outermost one, whose path is empty.
template <class Visit>
void for_each_module(std::string_view path, const Visit& visit) {
  while (!path.empty()) {
    visit(path);
    const std::size_t dot = path.rfind('.');
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
  }
}

/// Whether the last part of a path is a number, as for a module in a list.
bool is_numbered(std::string_view path) {
  return path.substr(path.rfind('.') + 1).find_first_not_of("0123456789") == std::string_view::npos;
}

/// Modules that are never called, such as lists of modules; none if the recording does not name them.
std::optional<std::set<std::string, std::less<>>> containers_of(const Trace& trace) {
  const auto told = texts_of(trace, "containers");
  if (!told) return std::nullopt;
  return std::set<std::string, std::less<>>{told->begin(), told->end()};
}

/// The forward passes of a step, and the modules that run again within backward passes.
struct Passes {
  struct One {
    Pass pass;
    std::vector<std::size_t> ops;  ///< positions of its forward ops in Trace::steps()
  };
  std::vector<One> passes;
  std::set<std::string, std::less<>> run_again;
};

Passes module_passes(const Trace& trace) {
  Passes found;
  bool in_forward = false, again = false, is_over = false;  // is_over: an optimizer op has ended the backward pass
  std::set<StringId> seen;                                  // modules
  const auto are_alike = [](const Op& a, const Op& b) { return a.module == b.module && a.name == b.name; };
  const auto op_at = [&](std::size_t position) -> const Op& { return trace.op(OpId{trace.events()[position].id}); };
  // Whether a forward op outside of all modules comes before the next backward op; for example, the op that makes the
  // gradient of a loss. Ops that run again within a backward pass are in modules.
  const auto has_loss = [&](std::size_t position) {
    for (std::size_t i = position; i < trace.events().size(); ++i) {
      if (trace.events()[i].kind != EventKind::kRun) continue;
      if (op_at(i).phase == Phase::kBackward) return false;
      if (op_at(i).phase == Phase::kForward && trace.text(op_at(i).module).empty()) return true;
    }
    return false;
  };
  // Whether the op at a position begins a new forward pass. Otherwise it runs again: the module of such an op has run
  // before, and the op runs within a backward pass. A micro-batch begins and ends with the same ops as the first pass;
  // ops that run again do not.
  const auto begins_pass = [&](std::size_t position) {
    if (found.passes.empty() || is_over || !seen.contains(op_at(position).module) || has_loss(position)) return true;
    const std::vector<std::size_t>& first = found.passes.front().ops;
    if (!are_alike(op_at(position), op_at(first.front()))) return false;
    for (std::size_t i = position; i < trace.events().size(); ++i) {
      if (trace.events()[i].kind != EventKind::kRun) continue;
      if (op_at(i).phase == Phase::kBackward) return false;
      if (op_at(i).phase == Phase::kForward && are_alike(op_at(i), op_at(first.back()))) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind != EventKind::kRun) continue;
    const Op& op = op_at(i);
    if (op.phase == Phase::kBackward) in_forward = again = is_over = false;
    if (op.phase == Phase::kOptimizer) is_over = true;
    if (op.phase != Phase::kForward) continue;
    if (!in_forward && !again) {
      if (trace.text(op.module).empty()) continue;  // an op without a module, for example one that makes the batch
      again = !begins_pass(i);
      in_forward = !again;
      if (in_forward) {
        if (!found.passes.empty()) found.passes.back().pass.backward_end = allocations_for(trace, i);
        found.passes.emplace_back();
      }
    }
    if (again) {
      for_each_module(trace.text(op.module), [&](std::string_view module) { found.run_again.emplace(module); });
      continue;
    }
    seen.insert(op.module);
    found.passes.back().ops.push_back(i);
    found.passes.back().pass.forward_end = i + 1;
  }
  if (!found.passes.empty()) found.passes.back().pass.backward_end = trace.events().size();
  return found;
}

/// The first pass, from the call's pass on, whose backward pass has an op of the call's module. It is later than the
/// call's pass if the call's output is detached, as in a GAN. If no backward pass has such an op: the call's pass.
Pass pass_of_backward(const Passes& found, const BackwardOps& backward, const ModuleCall& call) {
  const auto first = std::partition_point(found.passes.begin(), found.passes.end(), [&](const Passes::One& each) {
    return each.pass.forward_end < call.pass.forward_end;
  });
  for (auto each = first; each != found.passes.end(); ++each)
    if (!backward.within(call.module, each->pass.forward_end, each->pass.backward_end).empty()) return each->pass;
  return call.pass;
}

/// First parts of the paths of named parameters.
std::set<std::string_view> parts_of_models(const Trace& trace) {
  std::set<std::string_view> parts;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.kind == BufferKind::kParameter && !trace.text(buffer.name).empty())
      parts.insert(first_part(trace.text(buffer.name)));
  return parts;
}

}  // namespace

std::optional<std::vector<std::string>> texts_of(const Trace& trace, const std::string& key) {
  const auto told = trace.data().meta.find(key);
  if (told == trace.data().meta.end()) return std::nullopt;
  const nlohmann::json list = nlohmann::json::parse(told->second, nullptr, false);
  if (!list.is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const nlohmann::json& text : list)
    if (text.is_string()) texts.push_back(text.get<std::string>());
  return texts;
}

bool lies_in(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

BackwardOps::BackwardOps(const Trace& trace) {
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind != EventKind::kRun) continue;
    const Op& op = trace.op(OpId{trace.events()[i].id});
    if (op.phase == Phase::kBackward)
      for_each_module(trace.text(op.module), [&](std::string_view module) { by_module_[module].push_back(i); });
  }
}

std::span<const std::size_t> BackwardOps::within(std::string_view module, std::size_t first, std::size_t end) const {
  const auto found = by_module_.find(module);
  if (found == by_module_.end()) return {};
  const auto& ops = found->second;
  return {std::lower_bound(ops.begin(), ops.end(), first), std::lower_bound(ops.begin(), ops.end(), end)};
}

std::size_t allocations_for(const Trace& trace, std::size_t position) {
  const OpId op{trace.events()[position].id};
  while (position > 0 && trace.events()[position - 1].kind == EventKind::kAlloc &&
         trace.allocated_for(position - 1) == op)
    --position;
  return position;
}

std::size_t behind_call(const Trace& trace, std::string_view module, std::size_t position) {
  std::size_t behind = position + 1;
  for (std::size_t i = position + 1; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind != EventKind::kRun) continue;
    const Op& op = trace.op(OpId{trace.events()[i].id});
    if (op.phase != Phase::kForward || !lies_in(trace.text(op.module), module)) break;
    behind = i + 1;
  }
  return behind;
}

std::vector<ModuleCall> module_calls(const Trace& trace) {
  const Passes found = module_passes(trace);
  const std::set<std::string_view> parts = parts_of_models(trace);
  const auto containers = containers_of(trace);
  std::map<std::string, std::vector<ModuleCall>, std::less<>> calls;
  std::set<std::string, std::less<>> left_out = found.run_again, called;
  for (const Passes::One& pass : found.passes) {
    std::map<std::string_view, std::size_t> last;  // for each module, the index in pass.ops of its last op so far
    for (std::size_t k = 0; k < pass.ops.size(); ++k) {
      const std::size_t position = pass.ops[k];
      const std::string_view path = trace.text(trace.op(OpId{trace.events()[position].id}).module);
      if (!parts.empty() && !parts.contains(first_part(path))) continue;
      bool inner_numbered = false;
      for_each_module(path, [&](std::string_view module) {
        if (containers ? !containers->contains(module) : !inner_numbered) called.emplace(module);
        inner_numbered = is_numbered(module);
        const auto [entry, is_new] = last.try_emplace(module, k);
        if (is_new)
          calls[std::string{module}].push_back(
              {std::string{module}, allocations_for(trace, position), position + 1, pass.pass});
        else if (entry->second + 1 != k)
          left_out.emplace(module);
        entry->second = k;
        calls.find(module)->second.back().behind = position + 1;
      });
    }
  }
  std::vector<ModuleCall> all;
  for (auto& [module, of_module] : calls)
    if (called.contains(module) && !left_out.contains(module))
      all.insert(all.end(), of_module.begin(), of_module.end());
  const BackwardOps backward{trace};
  for (ModuleCall& call : all) call.pass = pass_of_backward(found, backward, call);
  return all;
}

bool has_several_backward_passes(const Trace& trace) {
  bool in_backward = false, is_over = false;  // is_over: an optimizer op has ended a backward pass
  for (const Event& event : trace.events()) {
    if (event.kind != EventKind::kRun) continue;
    const Phase phase = trace.op(OpId{event.id}).phase;
    if (phase == Phase::kBackward && is_over) return true;
    in_backward = in_backward || phase == Phase::kBackward;
    is_over = is_over || (in_backward && phase == Phase::kOptimizer);
  }
  const auto has_backward = [&](const Passes::One& each) {
    for (std::size_t i = each.pass.forward_end; i < each.pass.backward_end; ++i)
      if (trace.events()[i].kind == EventKind::kRun && trace.op(OpId{trace.events()[i].id}).phase == Phase::kBackward)
        return true;
    return false;
  };
  const std::vector<Passes::One> passes = module_passes(trace).passes;
  return std::count_if(passes.begin(), passes.end(), has_backward) > 1;
}

}  // namespace tidepool
