// tidepool resume: continues every sweep in a database, without its command line.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "simulator/studies/commands/sweep_run.hpp"
#include "simulator/studies/sweep/version.hpp"
#include "traces/base/command.hpp"
#include "traces/base/error.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

struct ResumeArguments {
  std::string database, threads;
  SweepShow show;
};

SweepOrder order_of(const SweepRequest& request, const std::string& path) {
  if (request.version != build_version())
    throw InputError{fmt::format("{}: its sweep was begun by tidepool {}; expected {}, as runs of two versions differ",
                                 path, request.version, build_version())};
  return naming(path, [&] { return parse_order(request.request); });
}

int run_resume(const ResumeArguments& arguments) {
  const int threads = parse_threads(arguments.threads);
  const std::string& name = arguments.database;
  Database database{name.empty() ? name : std::filesystem::absolute(name).string(), Database::Open::kExisting};
  const std::vector<SweepRequest> requests = database.requests();
  if (requests.empty()) throw InputError{fmt::format("{}: holds no sweep to resume", arguments.database)};
  std::vector<SweepOrder> orders;
  for (const SweepRequest& request : requests) orders.push_back(order_of(request, arguments.database));
  int code = 0;
  for (SweepOrder& order : joined(std::move(orders))) {
    std::error_code none;
    std::filesystem::current_path(order.folder, none);
    if (none)
      throw InputError{fmt::format("{}: the sweep was begun in {}: {}; expected that folder", arguments.database,
                                   order.folder, none.message())};
    const std::vector<SweepPart> parts = load_parts(order);
    code = std::max(code, run_sweep(order, parts, database, threads, arguments.show));
    if (code > 1) break;  // interrupted
  }
  return code;
}

const RegisterCommand kResume{
    {.name = "resume",
     .summary = "go on with an interrupted sweep: does the runs that its database lacks",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<ResumeArguments>();
       app.add_option("results", arguments->database, "what sweep -o wrote").required().type_name("FILE");
       app.add_option("-j,--threads", arguments->threads, "runs at a time; all cores if not given");
       declare_show_options(app, arguments->show);
       return std::function<int()>{[arguments] { return run_resume(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
