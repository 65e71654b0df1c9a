// Writers of traces in other forms register themselves.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/export/recording.hpp"
#include "traces/input.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// One form that a trace, or any recording, may be written in.
struct Exporter {
  std::string name;                                     ///< what --to takes, as in "jsonl"
  std::string summary;                                  ///< one line: what it is for, and what it leaves out
  std::function<std::string(const Trace&)> write = {};  ///< empty: by way of recording_of()
  std::function<std::string(const Recording&)> write_recording = {};  ///< empty: only traces can be written so
};

/// A namespace-scope object of this type makes a form known.
struct RegisterExporter {
  explicit RegisterExporter(Exporter exporter);
};

/// Sorted by name.
const std::vector<Exporter>& all_exporters();

/// Something else than a trace that makes a recording: a file about a run of a trace.
struct RecordingSource {
  std::function<bool(std::string_view head)> sniff;  ///< by the first bytes
  std::function<Recording(const Input& input, const Trace& trace)> read;
};

/// A namespace-scope object of this type makes one known.
struct RegisterRecordingSource {
  explicit RegisterRecordingSource(RecordingSource source);
};

/// The source of a file, or nullptr if it is none of them.
const RecordingSource* find_recording_source(const Input& input);

/// @throws InputError  "no form named 'jsonn', did you mean 'jsonl'?; known: csv, jsonl"
const Exporter& find_exporter(const std::string& name);

}  // namespace tidepool
