#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "traces/step/dependencies.hpp"
#include "traces/step/rebuild.hpp"

namespace tidepool {
namespace {

/// Length of the lists of an op on lists of tensors; 1: it has no lists, or cannot be divided. The lists follow each
/// other in its uses, and all entries of a list are used in the same way. The number of written entries gives the
/// length. An entry that is only read may be a part of a larger buffer, as gradients that share memory are.
std::size_t list_length(const Trace& trace, OpId id) {
  const std::string_view name = trace.text(trace.op(id).name);
  if (!name.starts_with("aten::_foreach_")) return 1;
  const std::span<const Use> uses = trace.uses(id);
  const auto written =
      static_cast<std::size_t>(std::count_if(uses.begin(), uses.end(), [](const Use& use) { return use.out.valid(); }));
  if (written < 2 || uses.size() % written != 0) return 1;
  std::size_t changed_list = 0;  // where the list of written entries begins
  while (changed_list < uses.size() && !uses[changed_list].out.valid()) changed_list += written;
  if (changed_list == uses.size()) return 1;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Use &use = uses[i], &first_of_list = uses[i / written * written];
    const Use& changed = uses[changed_list + i % written];
    const auto bytes = [&](const Use& of) {
      return trace.buffer(trace.version(of.in.valid() ? of.in : of.out).buffer).size;
    };
    if (use.access != first_of_list.access || use.evidence != Evidence::kSchema) return 1;
    if (use.out.valid() ? bytes(use) != bytes(changed) : bytes(use) < bytes(changed)) return 1;
  }
  return written;
}

/// Runs an op on lists as one op for each entry.
void run_apart(const Trace& trace, OpId id, std::size_t length, Rebuild& to) {
  const std::span<const Use> uses = trace.uses(id);
  const auto bytes = [&](std::size_t entry) {
    const Use& use = uses[entry];
    return trace.buffer(trace.version(use.in.valid() ? use.in : use.out).buffer).size;
  };
  Bytes all, so_far;
  for (std::size_t i = 0; i < length; ++i) all += bytes(i);
  Nanos given;
  std::vector<Use> entry;
  for (std::size_t i = 0; i < length; ++i) {
    entry.clear();
    for (std::size_t use = i; use < uses.size(); use += length) entry.push_back(uses[use]);
    so_far += bytes(i);
    const double share = all > Bytes{} ? static_cast<double>(so_far.count()) / static_cast<double>(all.count())
                                       : static_cast<double>(i + 1) / static_cast<double>(length);
    const Nanos until =
        i + 1 == length ? trace.op(id).duration
                        : Nanos{static_cast<std::int64_t>(static_cast<double>(trace.op(id).duration.count()) * share)};
    to.run(id, entry, until - given);
    given = until;
  }
}

}  // namespace

Trace split_foreach(const Trace& trace) {
  Rebuild to{trace};
  for (const Event& event : trace.events()) switch (event.kind) {
      case EventKind::kAlloc:
        to.alloc(BufferId{event.id});
        break;
      case EventKind::kFree:
        to.free(BufferId{event.id});
        break;
      case EventKind::kRun:
        if (const std::size_t length = list_length(trace, OpId{event.id}); length > 1)
          run_apart(trace, OpId{event.id}, length, to);
        else
          to.run(OpId{event.id});
        break;
      case EventKind::kForget:  // has a meaning only if in-place writes are copies
        break;
    }
  return to.finish();
}

}  // namespace tidepool
