// tidepool export: a trace in another form.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "traces/command.hpp"
#include "traces/exporter.hpp"
#include "traces/importer.hpp"

namespace tidepool {
namespace {

struct Arguments {
  std::string input, form, output = "-";
};

std::string forms() {
  std::string text;
  for (const Exporter& exporter : all_exporters())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", exporter.name, exporter.summary);
  return text;
}

int export_trace(const Arguments& arguments) {
  const Exporter& exporter = find_exporter(arguments.form);
  const std::string text = exporter.write(load_trace(arguments.input));
  if (arguments.output == "-")
    fmt::print("{}", text);
  else
    write_file(arguments.output, text);
  return 0;
}

const RegisterCommand kRegistered{
    {.name = "export", .summary = "write a trace in another form", .declare = [](CLI::App& app) {
       const auto arguments = std::make_shared<Arguments>();
       app.add_option("trace", arguments->input, "RUN.tide, or anything that import reads")->required();
       app.add_option("--to", arguments->form, forms())->required();
       app.add_option("-o,--output", arguments->output, "file to write; - is standard output")->capture_default_str();
       return [arguments] { return export_trace(*arguments); };
     }}};

}  // namespace
}  // namespace tidepool
