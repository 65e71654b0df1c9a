// Helpers for tests of importers: texts in, traces or messages out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/import/readers.hpp"

namespace tidepool::tests {

/// The error message of `read` for `bytes` as the file "t.log"; "" if there is no error.
template <class Read>
std::string complaint(Read read, std::string_view bytes) {
  try {
    read(Input{"t.log", bytes});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// The steps of a trace as short texts: "alloc 0" and "free 0" with the buffer's number, "run add" with the op's name,
/// "forget 2" with the version's number.
inline std::vector<std::string> program(const Trace& trace) {
  std::vector<std::string> lines;
  for (const Event& event : trace.events()) {
    const std::string id = std::to_string(event.id);
    switch (event.kind) {
      case EventKind::kAlloc:
        lines.push_back("alloc " + id);
        break;
      case EventKind::kFree:
        lines.push_back("free " + id);
        break;
      case EventKind::kForget:
        lines.push_back("forget " + id);
        break;
      case EventKind::kRun:
        lines.push_back("run " + std::string{trace.text(trace.op(OpId{event.id}).name)});
        break;
    }
  }
  return lines;
}

}  // namespace tidepool::tests
