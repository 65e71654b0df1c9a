#include "simulator/studies/sweep/merge.hpp"

#include <fmt/format.h>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kBatch = 1'000;

/// The file that a run came from: the first source that has it, or `into` if none has it.
/// @param sources  those that were merged so far
std::string origin(std::span<const std::string> sources, const Database& into, const std::string& key) {
  for (const std::string& path : sources)
    if (Database{path, Database::Open::kExisting}.outcome(key)) return path;
  return into.path();
}

void check_version(const Database& source, std::string& version, std::string& version_of) {
  for (const std::string& found : source.versions()) {
    if (version.empty()) {
      version = found;
      version_of = source.path();
    }
    if (found != version)
      throw InputError{fmt::format("{}: runs of tidepool {}, but {} in {}; expected one version, or --any-version",
                                   source.path(), found, version, version_of)};
  }
}

}  // namespace

MergeCount merge(std::span<const std::string> sources, Database& into, bool any_version) {
  std::string version, version_of;
  if (!any_version) check_version(into, version, version_of);
  for (const std::string& path : sources) {
    const Database source{path, Database::Open::kExisting};
    source.check();
    if (!any_version) check_version(source, version, version_of);
  }
  MergeCount count;
  const std::int64_t before = into.runs();
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Database source{sources[i], Database::Open::kExisting};
    std::vector<KeyedRow> batch;
    const auto flush = [&] {
      try {
        into.insert(batch, sources[i]);
      } catch (const Disagreement& error) {
        throw error.from(origin(sources.first(i), into, error.key()));
      }
      batch.clear();
    };
    source.each([&](KeyedRow&& row) {
      ++seen;
      batch.push_back(std::move(row));
      if (batch.size() == kBatch) flush();
    });
    flush();
    into.insert(source.measurements());
    for (const SweepRequest& request : source.requests()) into.insert(request);
  }
  count.added = into.runs() - before;
  count.known = seen - count.added;
  return count;
}

}  // namespace tidepool
