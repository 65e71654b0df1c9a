// Running a program for a GPU on a machine without one.
#pragma once

#include <map>
#include <string>

namespace tidepool::dry {

struct DryRun {
  std::string device;                      ///< a name of device_presets()
  std::string capacity;                    ///< of the device's memory, as in "24GiB"; empty: the device's own
  std::string placement = "lowest-first";  ///< of memory, or top-down (Placement)
  int devices = 1;                         ///< that a process sees; those that torchrun starts see one for each of them
};

/// "h100-80gb, h200, ...", for help and messages.
std::string device_names();

/// The environment in which a program finds the stand-in instead of a device, to be set over its own.
/// @throws InputError  for an unknown device, a size that is none or less than the device's context needs, and where
/// the
///                     stand-in library is neither beside the program nor where it is installed
std::map<std::string, std::string> dry_environment(const DryRun& run);

}  // namespace tidepool::dry
