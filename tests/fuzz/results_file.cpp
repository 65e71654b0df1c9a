// Any bytes as a database of results, opened in the way in which commands open it: read or refused, nothing else.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "simulator/studies/sweep/compare.hpp"
#include "simulator/studies/sweep/merge.hpp"
#include "tests/fuzz/mutations/mutations.hpp"

using namespace tidepool;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/tmp/fuzz-results-" + std::to_string(getpid()) + ".sqlite";
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) unlink((path + suffix).c_str());
  std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const Database database{path, Database::Open::kExisting};
    std::int64_t rows = 0;
    database.each([&](const KeyedRow&) { ++rows; });
    static_cast<void>(database.requests());
    static_cast<void>(database.measurements());
    const ResultSelection all = parse_selection(path);
    static_cast<void>(compare(all, database, all, database));
    Database into{":memory:"};
    merge(std::vector{path}, into, true);
  } catch (const std::runtime_error&) {  // InputError, or an error of SQLite
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tidepool::fuzz::mutate_in_place(data, size, most, seed, tidepool::fuzz::mutate_sqlite);
}
