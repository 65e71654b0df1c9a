// Number of devices that programs see.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace tidepool::dry {

inline constexpr int kMostDevices = 64;  // of one machine, as the stand-in shows it

/// "0,1,2" for 3.
inline std::string device_list(int count) {
  std::string list = "0";
  for (int i = 1; i < count; ++i) list += "," + std::to_string(i);
  return list;
}

/// The number of devices that CUDA_VISIBLE_DEVICES names, at most kMostDevices. A dry run always sets the variable; the
/// number is 1 if it is not set, or is empty.
inline int device_count() {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) return 1;
  const auto commas = std::count(list, list + std::strlen(list), ',');
  return static_cast<int>(std::min<std::ptrdiff_t>(commas + 1, kMostDevices));
}

}  // namespace tidepool::dry
