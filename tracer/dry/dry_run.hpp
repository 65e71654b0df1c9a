// Environment of a GPU program on a machine without a GPU.
#pragma once

#include <map>
#include <string>

namespace tidepool::dry {

struct DryRun {
  std::string device;                      ///< a name of device_presets()
  std::string capacity;                    ///< of the device's memory, as in "24GiB"; empty: that of the preset
  std::string placement = "lowest-first";  ///< of memory: "lowest-first" or "top-down", see Placement
  std::string routing = "balanced";        ///< what unknown values choose: "balanced", "zipf", "worst", or a file
  int devices = 1;  ///< that a process sees; if 1, a process of torchrun sees as many as torchrun has processes here
};

/// "h100-80gb, h200, ...", for help and messages.
std::string device_names();

/// The environment variables with which a program finds the dry device. They replace variables of the same names in
/// the program's own environment.
/// @throws InputError  for an unknown device, placement or routing, or a wrong number of devices; for a capacity that
///                      is no size, or no more than the device's context needs; if its library is neither beside the
///                      program nor installed, or its path has a blank or a colon
std::map<std::string, std::string> dry_environment(const DryRun& run);

}  // namespace tidepool::dry
