// Meaning of the names in a DTR log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "traces/base/lines.hpp"
#include "traces/import/dtr_log.hpp"

namespace tidepool {

/// A tensor of a DTR log: a root owns a storage, the others are views of a root. A name is bound to a value. A storage
/// ends when no name is bound to its root or to a view of it any more, as in the authors' simulator.
struct DtrValue {
  std::uint32_t root = 0;  ///< itself for a root
  std::uint32_t name = 0;  ///< the name under which it was made
  std::int64_t refs = 0;   ///< names bound to it and not released
  // Of roots only:
  std::int64_t size = 0;
  std::int64_t root_refs = 0;  ///< refs of all values with this root
  std::size_t last_read = 0;   ///< the last instruction that reads the root or a view of it
  bool asked_for = false;      ///< the root or a view of it is an output
  std::uint32_t chain = 0;     ///< number shared by all roots that one buffer holds in turn
};

/// A root whose last reference ended with an instruction.
struct DtrDeath {
  std::size_t instruction = 0;
  std::uint32_t root = 0;
};

/// The values of a whole log. Later lines show whether a MUTATE wrote in place: it did if no later instruction reads an
/// old value, no old value is an output, and the MUTATE names the arguments that it changes in ascending order, no two
/// of them with the same storage. If not, the logged program ran it on a copy.
struct DtrValues {
  std::vector<DtrValue> values;
  std::vector<std::uint32_t> args;          ///< parallel to DtrLog::args: the values read
  std::vector<std::uint32_t> first_made;    ///< by instruction: the first of the values that it makes
  std::vector<DtrDeath> deaths;             ///< in the order of the log
  std::vector<std::uint32_t> outputs;       ///< in the order in which the log first binds their names
  std::vector<bool> in_place;               ///< by instruction: a MUTATE that changes its arguments' own storages
  std::vector<std::uint32_t> chain_length;  ///< by chain: number of roots

  std::uint32_t root(std::uint32_t value) const { return values[value].root; }
  std::uint32_t chain(std::uint32_t value) const { return values[root(value)].chain; }
};

/// @param lines  of the log, for positions in messages
/// @throws InputError  "file:line: reads 'x9', which no line before made" and the like
DtrValues find_dtr_values(const DtrLog& log, const Lines& lines);

}  // namespace tidepool
