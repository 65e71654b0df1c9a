// tidepool merge: one database from the databases of several workers.
#include "simulator/studies/sweep/merge.hpp"

#include <fmt/format.h>

#include <memory>

#include "traces/base/command.hpp"
#include "traces/base/counted.hpp"
#include "traces/base/error.hpp"
#include "traces/base/numbers.hpp"
#include "traces/base/say.hpp"

namespace tidepool {
namespace {

struct MergeArguments {
  std::vector<std::string> sources;
  std::string output;
  bool any_version = false;
};

int run_merge(const MergeArguments& arguments) {
  if (arguments.output == ":memory:")
    throw InputError{"-o: ':memory:' ends with the command; expected the name of a file, as in results.sqlite"};
  for (const std::string& path : arguments.sources) Database{path, Database::Open::kExisting};  // refuses wrong files
  Database into{arguments.output};
  const MergeCount count = merge(arguments.sources, into, arguments.any_version);
  say("{} added, {} known; {} in {}\n", counted(count.added, "run"), grouped(count.known), counted(into.runs(), "run"),
      arguments.output);
  return 0;
}

const RegisterCommand kMerge{
    {.name = "merge",
     .summary = "put the databases of several workers together; two results of one run are an error",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<MergeArguments>();
       app.add_option("results", arguments->sources, "what sweep -o wrote").required().type_name("FILE");
       app.add_option("-o,--output", arguments->output, "the database to add to, or a new one")
           .required()
           .type_name("FILE");
       app.add_flag("--any-version", arguments->any_version,
                    "accept runs of different versions of tidepool; these are different runs");
       return std::function<int()>{[arguments] { return run_merge(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
