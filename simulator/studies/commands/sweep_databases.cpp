#include "simulator/studies/commands/sweep_databases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "simulator/studies/sweep/merge.hpp"
#include "simulator/studies/sweep/version.hpp"
#include "traces/base/counted.hpp"
#include "traces/base/error.hpp"
#include "traces/base/numbers.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/say.hpp"

namespace tidepool {
namespace {

SweepOrder order_of(const SweepRequest& request, const std::string& path) {
  if (request.version != build_version())
    throw InputError{fmt::format("{}: its sweep was begun by tidepool {}; expected {}, as runs of two versions differ",
                                 path, request.version, build_version())};
  return naming(path, [&] { return parse_order(request.request); });
}

}  // namespace

int merge_databases(std::span<const std::string> sources, const std::string& output, bool any_version) {
  if (output == ":memory:")
    throw InputError{"-o: ':memory:' ends with the command; expected the name of a file, as in results.sqlite"};
  for (const std::string& path : sources) Database{path, Database::Open::kExisting};  // refuses wrong files
  Database into{output};
  const MergeCount count = merge(sources, into, any_version);
  say("{} added, {} known; {} in {}\n", counted(count.added, "run"), grouped(count.known), counted(into.runs(), "run"),
      output);
  return 0;
}

int resume_sweep(const std::string& path, int threads, const SweepShow& show) {
  Database database{std::filesystem::absolute(path).string(), Database::Open::kExisting};
  const std::vector<SweepRequest> requests = database.requests();
  if (requests.empty()) throw InputError{fmt::format("{}: holds no sweep to resume", path)};
  std::vector<SweepOrder> orders;
  for (const SweepRequest& request : requests) orders.push_back(order_of(request, path));
  int code = 0;
  for (SweepOrder& order : joined(std::move(orders))) {
    std::error_code none;
    std::filesystem::current_path(order.folder, none);
    if (none)
      throw InputError{
          fmt::format("{}: the sweep was begun in {}: {}; expected that folder", path, order.folder, none.message())};
    const std::vector<SweepPart> parts = load_parts(order);
    code = std::max(code, run_sweep(order, parts, database, threads, show));
    if (code > 1) break;  // interrupted
  }
  return code;
}

}  // namespace tidepool
