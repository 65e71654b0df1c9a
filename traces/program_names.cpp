#include "traces/program_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tidepool {
namespace {

/// Both texts with a separator, or the one that is not empty.
std::string joined(std::string_view first, std::string_view separator, std::string_view second) {
  return fmt::format("{}{}{}", first, first.empty() || second.empty() ? "" : separator, second);
}

/// The module of the op that a buffer is for. If that op has neither module nor line: the module of the first op that
/// reads the buffer and has one.
std::string_view module_of(const Trace& trace, BufferId id, OpId is_for) {
  if (!is_for.valid()) return {};
  const std::string_view module = trace.text(trace.op(is_for).module);
  if (!module.empty() || trace.op(is_for).line.valid()) return module;
  for (const OpId reader : trace.readers(trace.first_version(id)))
    if (const std::string_view other = trace.text(trace.op(reader).module); !other.empty()) return other;
  return {};
}

std::string in_brackets(std::string text) { return text.empty() ? text : fmt::format(" ({})", text); }

}  // namespace

OpId first_op(const Trace& trace, BufferId id) {
  const VersionId first = trace.first_version(id);
  if (!first.valid()) return {};
  if (const OpId producer = trace.version(first).producer; producer.valid()) return producer;
  const auto readers = trace.readers(first);
  return readers.empty() ? OpId{} : readers.front();
}

OpId op_it_is_for(const Trace& trace, BufferId id) {
  const OpId first = first_op(trace, id);
  if (first.valid() || trace.ops().empty()) return first;
  const auto steps = trace.events();
  const auto alloc = std::find(steps.begin(), steps.end(), Event{EventKind::kAlloc, id.value()});
  return alloc == steps.end() ? OpId{} : trace.allocated_for(static_cast<std::size_t>(alloc - steps.begin()));
}

std::vector<OpId> ops_they_are_for(const Trace& trace) {
  std::vector<OpId> found;
  for (std::size_t i = 0; i < trace.buffers().size(); ++i) found.push_back(first_op(trace, BufferId{i}));
  for (std::size_t i = 0; i < trace.events().size(); ++i)
    if (const Event event = trace.events()[i]; event.kind == EventKind::kAlloc && !found[event.id].valid())
      found[event.id] = trace.allocated_for(i);
  return found;
}

std::string_view line_of(const Trace& trace, BufferId id, OpId is_for) {
  const Buffer& buffer = trace.buffer(id);
  if (buffer.line.valid()) return trace.text(buffer.line);
  return is_for.valid() && !buffer.born_before ? trace.text(trace.op(is_for).line) : std::string_view{};
}

std::string place_text(const Trace& trace, OpId id) {
  const Op& op = trace.op(id);
  return joined(trace.text(op.module), ", ", trace.text(op.line));
}

std::string op_text(const Trace& trace, OpId id) {
  const Op& op = trace.op(id);
  const std::string_view module = trace.text(op.module);
  const std::string called = joined(trace.text(op.name), " in ", module);
  return fmt::format("op {}{}", id.value(), in_brackets(joined(called, ", ", trace.text(op.line))));
}

std::string program_name(const Trace& trace, BufferId id, OpId is_for) {
  const std::string_view name = trace.text(trace.buffer(id).name);
  return joined(name.empty() ? module_of(trace, id, is_for) : name, ", ", line_of(trace, id, is_for));
}

std::string buffer_text(const Trace& trace, BufferId id) { return buffer_text(trace, id, op_it_is_for(trace, id)); }

std::string buffer_text(const Trace& trace, BufferId id, OpId is_for) {
  return fmt::format("buffer {}{}", id.value(), in_brackets(program_name(trace, id, is_for)));
}

}  // namespace tidepool
