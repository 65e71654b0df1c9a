// Number of devices that programs see.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>

namespace tidepool::dry {

inline constexpr int kMostDevices = 64;  // of one machine, as the dry device shows it

/// "0,1,2" for 3.
inline std::string device_list(int count) {
  std::string list = "0";
  for (int i = 1; i < count; ++i) list += "," + std::to_string(i);
  return list;
}

/// The number of devices that `list` names as CUDA_VISIBLE_DEVICES, at most kMostDevices. As in CUDA, the devices
/// before the first entry that names none count: 0 for "", "-1" and "none", 1 for "0,-1,1".
inline int devices_named(const char* list) {
  int count = 0;
  while (list != nullptr && count < kMostDevices) {
    char* end = nullptr;
    const long number = std::strtol(list, &end, 10);
    const bool numbered = end != list && number >= 0 && number < kMostDevices;
    if (!numbered && std::strncmp(list, "GPU-", 4) != 0 && std::strncmp(list, "MIG-", 4) != 0) break;
    ++count;
    list = std::strchr(list, ',');
    if (list != nullptr) ++list;
  }
  return count;
}

/// The number of devices that CUDA_VISIBLE_DEVICES names. A dry run always sets the variable; the number is 1 if the
/// program removed it.
inline int device_count() {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  return list == nullptr ? 1 : devices_named(list);
}

}  // namespace tidepool::dry
