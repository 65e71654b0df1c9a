// Traces as files, for tests of the command line.
#pragma once

#include <fstream>
#include <string>

#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::tests {

/// Writes a trace as JSON lines. @return  its path
inline std::string write_trace(const ScratchFolder& scratch, const std::string& name, const Trace& trace) {
  const std::string path = scratch.file(name + ".jsonl");
  std::ofstream{path} << to_jsonl(trace);
  return path;
}

/// Writes random_trace(seed, ops) as JSON lines. @return  its path
inline std::string write_random_trace(const ScratchFolder& scratch, std::uint64_t seed, int ops) {
  return write_trace(scratch, "random-" + std::to_string(seed), random_trace(seed, ops));
}

}  // namespace tidepool::tests
