// The operator logs of the DTR authors' PyTorch prototype, line by line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/base/input.hpp"

namespace tidepool {

/// A tensor that a CONSTANT or CALL makes.
struct DtrResult {
  std::uint32_t name = 0;   ///< index into DtrLog::names
  std::int64_t size = 0;    ///< bytes; 0 for an alias, even if its MEMORY line has another size
  std::int32_t alias = -1;  ///< position of the argument whose storage it shares; -1 = a storage of its own
};

/// One instruction, with the MEMORY and ALIAS lines that belong to it.
struct DtrInstruction {
  enum class Kind : std::uint8_t { kConstant, kCall, kMutate, kCopy, kCopyFrom, kRelease, kBackward };
  /// [first, last) of an array of DtrLog.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };

  Kind kind = Kind::kCall;
  std::uint32_t line = 0;    ///< number of its line in the log, from 1
  std::uint32_t op = 0;      ///< kCall, kMutate: the operator, an index into DtrLog::names
  std::int64_t time_ns = 0;  ///< kCall, kMutate: measured
  Range args;                ///< kCall, kMutate: names read, in order, with repetitions
  Range results;             ///< kConstant, kCall
  Range mutated;             ///< kMutate: positions in `args`, in the order of the log
  std::uint32_t name = 0;    ///< kCopy, kCopyFrom: the destination; kRelease: the released name
  std::uint32_t source = 0;  ///< kCopy, kCopyFrom: the name that is copied
};

struct DtrLog {
  std::vector<std::string> names;  ///< of tensors and operators, each once
  std::vector<DtrInstruction> instructions;
  std::vector<std::uint32_t> args;
  std::vector<DtrResult> results;
  std::vector<std::uint32_t> mutated;
};

/// Reads one JSON object per line; lines before the first START annotation are skipped. Numbers may be strings.
/// @throws InputError  "file:line: what we saw; what we expected"
DtrLog parse_dtr_log(const Input& input);

}  // namespace tidepool
