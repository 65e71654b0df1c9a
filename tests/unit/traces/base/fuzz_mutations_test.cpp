// The mutations of the fuzz targets: they give many different results, in the format of the input.
#include <sqlite3.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/catch.hpp"
#include "tests/fuzz/mutations/mutations.hpp"
#include "tests/paths.hpp"
#include "tests/pickle_writer.hpp"
#include "tests/program.hpp"
#include "traces/base/error.hpp"
#include "traces/import/pickle.hpp"

namespace tidepool::fuzz_mutations_test {

namespace {

constexpr int kTries = 200;

std::string corpus(const std::string& name) {
  return content_of(paths::source_folder() + "/tests/fuzz/corpus/" + name);
}

/// The distinct results of `kTries` mutations of `original`.
template <class Mutate>
std::set<std::string> mutants(const std::string& original, Mutate mutate) {
  fuzz::Random random{1};
  std::set<std::string> all;
  for (int i = 0; i < kTries; ++i) all.insert(mutate(original, random));
  return all;
}

}  // namespace

TEST_CASE("mutations of JSON are JSON, as a whole or line by line") {
  for (const char* name : {"kineto/step.json", "plan_file/verbs.plan", "jsonl/by_hand.jsonl"}) {
    const std::string original = corpus(name);
    const std::set<std::string> all = mutants(original, fuzz::mutate_json);
    INFO(name);
    CHECK(all.size() > kTries / 4);
    for (const std::string& mutant : all) {
      std::size_t bad = 0;
      std::istringstream lines{mutant};
      if (!nlohmann::json::accept(mutant))
        for (std::string line; std::getline(lines, line);) bad += !line.empty() && !nlohmann::json::accept(line);
      CHECK(bad == 0);
    }
  }
}

TEST_CASE("mutations of a pickle keep its opcodes whole") {
  using tests::Pickled;
  const std::string original =
      Pickled::dict({{"action", Pickled::text("alloc")}, {"size", Pickled::list({Pickled::whole(1 << 20)})}}).pickle();
  const std::set<std::string> all = mutants(original, fuzz::mutate_pickle);
  CHECK(all.size() > kTries / 8);
  std::size_t read = 0;
  for (const std::string& mutant : all) {
    try {
      static_cast<void>(Pickle{mutant});
      ++read;
    } catch (const InputError&) {
    }
  }
  CHECK(read > all.size() / 4);  // if random bytes were changed, none would be read
}

TEST_CASE("mutations of a database are whole databases") {
  const std::set<std::string> all = mutants(corpus("nsys/small.sqlite"), fuzz::mutate_sqlite);
  CHECK(all.size() > kTries / 4);
  const ScratchFolder scratch;
  for (const std::string& mutant : all) {
    std::ofstream{scratch.file("a.sqlite"), std::ios::binary} << mutant;
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(scratch.file("a.sqlite").c_str(), &handle) == SQLITE_OK);
    std::string said;
    const auto keep = [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) += values[0];
      return 0;
    };
    sqlite3_exec(handle, "PRAGMA integrity_check", keep, &said, nullptr);
    sqlite3_close(handle);
    CHECK(said == "ok");
  }
}

}  // namespace tidepool::fuzz_mutations_test
