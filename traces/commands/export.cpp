// tidepool export: a trace in another form.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "traces/base/command_line.hpp"
#include "traces/base/refuse.hpp"
#include "traces/export/exporter.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

struct ExportArguments {
  std::string input, trace, form, output = "-";
};

std::string forms() {
  std::string text;
  for (const Exporter& exporter : all_exporters())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", exporter.name, exporter.summary);
  return text;
}

/// The bytes of a file; none for a folder.
std::optional<Input> bytes_of(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {};
  return read_input(path);
}

/// The recording that a plan describes; none if the input is a trace.
std::optional<Recording> recording_in(const ExportArguments& arguments, const Input& input) {
  const RecordingSource* const source = find_recording_source(input);
  if (source == nullptr && !arguments.trace.empty())
    refuse("{}: --trace {}: is for plans, and this is none", arguments.input, arguments.trace);
  if (source == nullptr) return {};
  if (arguments.trace.empty()) refuse("{}: a plan; expected --trace with the trace that it is for", arguments.input);
  return source->read(input, load_trace(arguments.trace));
}

std::string exported(const ExportArguments& arguments) {
  const Exporter& exporter = find_exporter(arguments.form);
  const std::optional<Input> input = bytes_of(arguments.input);
  const std::optional<Recording> recording = input ? recording_in(arguments, *input) : std::nullopt;
  if (recording && !exporter.write_recording)
    refuse("{}: --to {}: is a form of traces, and this is a plan", arguments.input, exporter.name);
  const auto trace = [&] { return input ? load_trace(*input) : load_trace(arguments.input); };
  if (!recording && exporter.write) return exporter.write(trace());
  try {
    return exporter.write_recording(recording ? *recording : recording_of(trace()));
  } catch (const InputError& error) {
    const std::string message = error.what();
    throw message.starts_with(arguments.input) ? error : error.at(arguments.input);
  }
}

int export_trace(const ExportArguments& arguments) {
  const std::string text = exported(arguments);
  if (arguments.output == "-")
    std::fwrite(text.data(), 1, text.size(), stdout);
  else
    write_file(arguments.output, text);
  return 0;
}

const RegisterCommand kExport{
    {.name = "export",
     .summary = "write a trace, or a plan as a run, in another form",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<ExportArguments>();
       app.add_option("trace", arguments->input, "RUN.tide, or anything that import reads; or RUN.plan").required();
       app.add_option("--trace", arguments->trace, "of a plan: the trace that it is for");
       app.add_option("--to", arguments->form, forms()).required();
       app.add_option("-o,--output", arguments->output, "file to write; - is standard output").capture_default_str();
       return [arguments] { return export_trace(*arguments); };
     }}};

}  // namespace
}  // namespace tidepool
