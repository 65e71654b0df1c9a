// Measured times of all-reduces by size and number of devices.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "simulator/machine.hpp"
#include "traces/base/input.hpp"

namespace tidepool {

/// Times of all-reduces within one node. Between two sizes of the table, time is interpolated linearly. Below the first
/// size, it is the time of the first size. Beyond the last size, it grows at the rate of the last size.
class CollectiveTable {
 public:
  /// Reads a CSV file with a header. Columns, in any order: gpu, n_gpus, size_bytes, time_in_place_ns (or, if the file
  /// has no such column, time_out_of_place_ns); other columns are ignored. nccl-tests measures such times.
  /// @param gpu  the device whose rows are read; "": the file has only one device
  /// @throws InputError  "t.csv:7: n_gpus is '2.5'; expected a whole number of at least 2"
  /// @throws InputError  "t.csv: no device 'h100'; the file has a100, v100"
  /// @throws InputError  "t.csv: has a100, v100; expected one of them to be named, as in t.csv:a100"
  CollectiveTable(const Input& input, const std::string& gpu);

  /// The time of an all-reduce of `size` bytes; nothing if the table has no rows for this number of devices.
  std::optional<Nanos> all_reduce(std::size_t devices, Bytes size) const;

 private:
  std::map<std::size_t, Link> by_devices_;
};

/// Reads a table named as FILE or FILE:DEVICE.
CollectiveTable read_collective_table(const std::string& name);

}  // namespace tidepool
