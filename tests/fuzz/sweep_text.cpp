// The texts that sweeps read: shards, objectives, selections and requests out of a database.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "simulator/studies/sweep/compare.hpp"
#include "simulator/studies/sweep/least_capacity.hpp"
#include "simulator/studies/sweep/shard.hpp"
#include "simulator/studies/sweep/sweep_request.hpp"
#include "traces/base/error.hpp"

using namespace tidepool;

namespace {

template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  try_to([&] {
    const Shard shard = parse_shard(text);
    if (shard.index < 1 || shard.index > shard.count) std::abort();
  });
  try_to([&] { static_cast<void>(parse_objective(text).holds(Row(result_columns().size()))); });
  try_to([&] { static_cast<void>(parse_selection(text).has({"k", Row(result_columns().size())})); });
  try_to([&] {
    const SweepOrder order = parse_order(text);
    if (to_json(parse_order(to_json(order))) != to_json(order)) std::abort();
  });
  return 0;
}
