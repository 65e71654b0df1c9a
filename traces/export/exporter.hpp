// Writers of traces in other forms register themselves.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/export/recording.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// One form that a trace, or any recording, may be written in.
struct Exporter {
  std::string name;                                     ///< the value of --to, as in "jsonl"
  std::string summary;                                  ///< one line: its use, and the data that it leaves out
  std::function<std::string(const Trace&)> write = {};  ///< empty: recording_of() and write_recording are used
  std::function<std::string(const Recording&)> write_recording = {};  ///< empty: only traces can be written
};

/// A namespace-scope object of this type registers a form.
struct RegisterExporter {
  explicit RegisterExporter(Exporter exporter);
};

/// Sorted by name.
const std::vector<Exporter>& all_exporters();

/// A kind of file other than traces that gives a recording, such as the plan of a run.
struct RecordingSource {
  std::function<bool(std::string_view head)> sniff;  ///< whether a file is of this kind, by its first bytes
  std::function<Recording(const Input& input, const Trace& trace)> read;
};

/// A namespace-scope object of this type registers a source.
struct RegisterRecordingSource {
  explicit RegisterRecordingSource(RecordingSource source);
};

/// The source for a file, or nullptr if the file is of no registered kind.
const RecordingSource* find_recording_source(const Input& input);

/// @throws InputError  "no form named 'jsonn', did you mean 'jsonl'?; known: csv, jsonl"
const Exporter& find_exporter(const std::string& name);

}  // namespace tidepool
