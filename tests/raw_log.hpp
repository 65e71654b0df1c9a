// Captures written by hand as JSON lines, for tests of assembly.
#pragma once

#include <string>

#include "tracer/raw/reader.hpp"

namespace tidepool::tests {

/// A capture file from lines with ' in place of ". By default it is of process 1 and on the common clock.
inline raw::Log raw_log(const std::string& lines,
                        const std::string& header = "'process': 1, 'source': 'cupti', 'clock': 'monotonic_raw'") {
  std::string text = "{'tidepool_raw': 1, " + header + "}\n" + lines;
  for (char& c : text)
    if (c == '\'') c = '"';
  return raw::read_raw_json(Input{"t.jsonl", text});
}

}  // namespace tidepool::tests
