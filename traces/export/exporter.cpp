#include "traces/export/exporter.hpp"

#include <algorithm>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/nearest.hpp"

namespace tidepool {
namespace {

std::vector<Exporter>& registry() {
  static std::vector<Exporter> exporters;
  return exporters;
}

std::vector<RecordingSource>& sources() {
  static std::vector<RecordingSource> sources;
  return sources;
}

}  // namespace

RegisterExporter::RegisterExporter(Exporter exporter) {
  std::vector<Exporter>& all = registry();
  const auto later = [](const Exporter& a, const Exporter& b) { return a.name < b.name; };
  all.insert(std::upper_bound(all.begin(), all.end(), exporter, later), std::move(exporter));
}

const std::vector<Exporter>& all_exporters() { return registry(); }

RegisterRecordingSource::RegisterRecordingSource(RecordingSource source) { sources().push_back(std::move(source)); }

const RecordingSource* find_recording_source(const Input& input) {
  for (const RecordingSource& source : sources())
    if (source.sniff(input.bytes().substr(0, kSniffBytes))) return &source;
  return nullptr;
}

const Exporter& find_exporter(const std::string& name) {
  std::vector<std::string> known;
  for (const Exporter& exporter : all_exporters()) {
    if (exporter.name == name) return exporter;
    known.push_back(exporter.name);
  }
  throw InputError{unknown_name("form", name, known)};
}

}  // namespace tidepool
