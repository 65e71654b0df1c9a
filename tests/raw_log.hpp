// For tests of assembly: captures written by hand, as JSON lines.
#pragma once

#include <string>

#include "tracer/raw/json_lines.hpp"

namespace tidepool::tests {

/// A capture file, of process 1 and on the common clock if nothing else is said, from lines with ' in place of ".
inline raw::Log raw_log(const std::string& lines,
                        const std::string& header = "'process': 1, 'source': 'cupti', 'clock': 'monotonic_raw'") {
  std::string text = "{'tidepool_raw': 1, " + header + "}\n" + lines;
  for (char& c : text)
    if (c == '\'') c = '"';
  return raw::read_raw_json(Input{"t.jsonl", text});
}

}  // namespace tidepool::tests
