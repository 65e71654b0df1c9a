// Readers of traces in other forms register themselves; a file's form is found by its first bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// One form that a trace may be read from.
struct Importer {
  std::string name;                     ///< the value of --format, as in "torch-snapshot"
  std::string summary;                  ///< one line for the list of formats
  std::vector<std::string> extensions;  ///< as in ".jsonl"; decides between forms that are equally likely
  /// The likelihood of this form, from the first bytes (at most kSniffBytes of them): 0 = it is not this form, 100 = it
  /// certainly is.
  std::function<int(std::string_view head)> sniff;
  /// @throws InputError  "path:line: what we saw; what we expected", with input.path() in front
  std::function<Trace(const Input& input)> read;
  /// Reads the part of one device only. Empty if the form has no devices.
  std::function<Trace(const Input& input, std::size_t device)> read_device = {};
  /// Reads a folder of several files, or the part of one device. Empty if the form is one file.
  std::function<Trace(const std::string& folder, std::optional<std::size_t> device)> read_folder = {};
  /// The likelihood that a folder has this form, as for files. Empty: 1.
  std::function<int(const std::string& folder)> sniff_folder = {};
  bool folder_has_devices = false;
  /// Reads a file together with a second file with further data. Empty if the form takes no second file.
  std::function<Trace(const Input& input, const Input& with, std::optional<std::size_t> device)> read_with = {};
};

/// A namespace-scope object of this type registers a form.
struct RegisterImporter {
  explicit RegisterImporter(Importer importer);
};

/// Sorted by name.
const std::vector<Importer>& all_importers();

/// The importer named `format`, or for "auto" the likeliest by the first bytes, or else by the keys of a JSON object.
/// @throws InputError  "no format named 'dtrr', did you mean 'dtr'?; known: csv, dtr, ...",
///                     "x.bin: binary data in no form that tidepool reads; known: csv, dtr, ...",
///                     "x.csv: is empty; expected a trace; known: ..."
const Importer& find_importer(const Input& input, const std::string& format);

/// The importer of a folder: the one named `format`, or for "auto" the one with the greatest likelihood.
/// @throws InputError  "runs: is a folder; expected one file, or for g10 or raw or raw-kernels or raw-operators a
///                     folder"
const Importer& find_folder_importer(const std::string& folder, const std::string& format);

/// Reads a file that is in one of the forms. Of others, only the first bytes are decompressed if no JSON object begins.
/// @throws InputError  as read_input() and find_importer()
Input read_trace_input(const std::string& path, const std::string& format = "auto");

/// Reads a trace in any known form, compressed or not; from a folder, in a form that takes folders.
/// @param device  reads the part of this device only, if it is given
/// @param with    a second file with further data, such as the profile of the run of an execution trace; "" = none
/// @throws InputError  "x.csv: --device 1: the form csv has no devices"
/// @throws InputError  "x.csv: --with p.json: the form csv takes no second file"
/// @throws InputError  as find_folder_importer()
Trace load_trace(const std::string& path, const std::string& format = "auto", std::optional<std::size_t> device = {},
                 const std::string& with = "");

/// The same for a file whose bytes are at hand. A pipe can be read only once.
Trace load_trace(const Input& input);

/// Loads a trace for runs, which have one memory.
/// @throws InputError  as load_trace() and require_one_device(), with the path in front
Trace load_for_runs(const std::string& path);

}  // namespace tidepool
