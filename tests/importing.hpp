// Helpers for tests of importers: texts in, traces or messages out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/error.hpp"
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
  for (const Step& step : trace.steps()) {
    const std::string id = std::to_string(step.id);
    switch (step.kind) {
      case StepKind::kAlloc:
        lines.push_back("alloc " + id);
        break;
      case StepKind::kFree:
        lines.push_back("free " + id);
        break;
      case StepKind::kForget:
        lines.push_back("forget " + id);
        break;
      case StepKind::kRun:
        lines.push_back("run " + std::string{trace.text(trace.op(OpId{step.id}).name)});
        break;
    }
  }
  return lines;
}

}  // namespace tidepool::tests
