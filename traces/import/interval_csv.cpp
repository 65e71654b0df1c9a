// Lifetimes without a program, from a table with the columns id, lower, upper and size: see lifetimes.hpp.
#include "traces/import/importer.hpp"
#include "traces/import/lifetimes.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

int sniff_csv(std::string_view head) { return looks_like_lifetimes(head) ? 90 : 0; }

const RegisterImporter kCsv{
    {"csv", "lifetimes of buffers: id,lower,upper,size", {".csv"}, sniff_csv, read_interval_csv}};

}  // namespace

Trace read_interval_csv(const Input& input) {
  return trace_of(read_lifetimes(input, LifetimeColumns::kPlain).rows, {{"source", "csv"}});
}

}  // namespace tidepool
