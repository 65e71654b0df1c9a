// Writers of traces in other forms register themselves.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// One form that a trace may be written in.
struct Exporter {
  std::string name;     ///< what --to takes, as in "jsonl"
  std::string summary;  ///< one line: what it is for, and what it leaves out
  std::function<std::string(const Trace&)> write;
};

/// A namespace-scope object of this type makes a form known.
struct RegisterExporter {
  explicit RegisterExporter(Exporter exporter);
};

/// Sorted by name.
const std::vector<Exporter>& all_exporters();

/// @throws InputError  "no form named 'jsonn', did you mean 'jsonl'?; known: csv, jsonl"
const Exporter& find_exporter(const std::string& name);

}  // namespace tidepool
