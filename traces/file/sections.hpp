// Sections of a trace file: the columns of their records, described once for writing and reading.
#pragma once

#include <cstdint>

#include "traces/file/columns.hpp"
#include "traces/trace.hpp"

namespace tidepool::file {

/// The largest number of an enum in the file, from the enum's last value.
template <class Enum>
constexpr std::uint8_t most(Enum last) {
  return static_cast<std::uint8_t>(last);
}

/// `outlives` is not stored: it follows from the steps.
template <class Code, class Buffers>
void code_buffers(Code& code, Buffers buffers) {
  code.number(
      "size", buffers, [](auto& b) -> auto& { return b.size; });
  code.delta(
      "address", buffers, [](auto& b) -> auto& { return b.address; });
  code.delta(
      "name", buffers, [](auto& b) -> auto& { return b.name; });
  code.number(
      "stream", buffers, [](auto& b) -> auto& { return b.stream; });
  code.number(
      "device", buffers, [](auto& b) -> auto& { return b.device; });
  code.small(
      "kind", most(BufferKind::kInput), buffers, [](auto& b) -> auto& { return b.kind; });
  code.small(
      "born before", 1, buffers, [](auto& b) -> auto& { return b.born_before; });
}

/// `root` is not stored: it follows from the parents.
template <class Code, class Versions>
void code_versions(Code& code, Versions versions) {
  code.small(
      "kind", most(VersionKind::kView), versions, [](auto& v) -> auto& { return v.kind; });
  code.delta(
      "buffer", versions, [](auto& v) -> auto& { return v.buffer; });
  code.delta_if(
      "producer", versions, [](auto& v) { return v.kind != VersionKind::kInitial; },
      [](auto& v) -> auto& { return v.producer; });
  code.distance(
      "parent", versions, [](auto& v) -> auto& { return v.parent; });
}

/// The uses of an op follow those of the op before it: only their number is stored.
template <class Code, class Ops>
void code_ops(Code& code, Ops ops) {
  code.delta(
      "name", ops, [](auto& op) -> auto& { return op.name; });
  code.delta(
      "module", ops, [](auto& op) -> auto& { return op.module; });
  code.number(
      "stream", ops, [](auto& op) -> auto& { return op.stream; });
  code.small(
      "kind", most(OpKind::kSource), ops, [](auto& op) -> auto& { return op.kind; });
  code.small(
      "phase", most(Phase::kOptimizer), ops, [](auto& op) -> auto& { return op.phase; });
  code.small(
      "random", 1, ops, [](auto& op) -> auto& { return op.random; });
  code.delta(
      "start", ops, [](auto& op) -> auto& { return op.start; });
  code.delta(
      "launch", ops, [](auto& op) -> auto& { return op.launch; });
  code.number(
      "duration", ops, [](auto& op) -> auto& { return op.duration; });
  code.length(
      "uses", ops, [](auto& op) -> auto& { return op.first_use; }, [](auto& op) -> auto& { return op.last_use; });
}

template <class Code, class Uses>
void code_uses(Code& code, Uses uses) {
  code.small(
      "access", most(Access::kView), uses, [](auto& use) -> auto& { return use.access; });
  code.small(
      "evidence", most(Evidence::kInferred), uses, [](auto& use) -> auto& { return use.evidence; });
  code.delta_if(
      "version in", uses, [](auto& use) { return use.access != Access::kWrite; },
      [](auto& use) -> auto& { return use.in; });
  code.delta_if(
      "version out", uses, [](auto& use) { return use.access != Access::kRead; },
      [](auto& use) -> auto& { return use.out; });
}

/// Ops run in id order: which one a step runs is not stored.
template <class Code, class Steps>
void code_steps(Code& code, Steps steps) {
  code.small(
      "kind", most(EventKind::kForget), steps, [](auto& step) -> auto& { return step.kind; });
  code.delta_if(
      "alloc", steps, [](auto& step) { return step.kind == EventKind::kAlloc; },
      [](auto& step) -> auto& { return step.id; });
  code.delta_if(
      "free", steps, [](auto& step) { return step.kind == EventKind::kFree; },
      [](auto& step) -> auto& { return step.id; });
  code.delta_if(
      "forget", steps, [](auto& step) { return step.kind == EventKind::kForget; },
      [](auto& step) -> auto& { return step.id; });
}

template <class Code, class Marks>
void code_marks(Code& code, Marks marks) {
  code.delta(
      "step", marks, [](auto& mark) -> auto& { return mark.event; });
  code.small(
      "kind", most(MarkKind::kRangeEnd), marks, [](auto& mark) -> auto& { return mark.kind; });
  code.delta(
      "name", marks, [](auto& mark) -> auto& { return mark.name; });
}

template <class Code, class Orders>
void code_orders(Code& code, Orders orders) {
  code.delta(
      "before", orders, [](auto& order) -> auto& { return order.before; });
  code.delta(
      "after", orders, [](auto& order) -> auto& { return order.after; });
}

/// The line of the user's code that a buffer or op has.
struct LineOf {
  std::uint32_t of = 0;  ///< id of the buffer or op
  StringId line = {};
};

template <class Code, class Lines>
void code_lines(Code& code, Lines lines) {
  code.delta(
      "of", lines, [](auto& line) -> auto& { return line.of; });
  code.delta(
      "line", lines, [](auto& line) -> auto& { return line.line; });
}

template <class Code, class Outputs>
void code_outputs(Code& code, Outputs outputs) {
  code.delta(
      "version", outputs, [](auto& version) -> auto& { return version; });
}

template <class Code, class Records>
void code_losses(Code& code, Records records) {
  code.number(
      "dropped records", records, [](auto& lost) -> auto& { return lost.dropped_records; });
  code.number(
      "unmatched frees", records, [](auto& lost) -> auto& { return lost.unmatched_frees; });
  code.number(
      "unknown pointers", records, [](auto& lost) -> auto& { return lost.unknown_pointers; });
  code.number(
      "clock residual", records, [](auto& lost) -> auto& { return lost.clock_residual_ns; });
}

}  // namespace tidepool::file
