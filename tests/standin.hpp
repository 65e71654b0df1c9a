// A GPU for tests: the stand-in driver of tests/standin, loaded in the way in which programs load NVIDIA's driver.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "validator/cuda/device.hpp"

namespace tidepool::tests {

/// The folder in which the dynamic linker finds the stand-in under the name of NVIDIA's driver.
inline std::string standin_folder() { return std::filesystem::path{TIDEPOOL_PROGRAM}.replace_filename("standin"); }

/// One stand-in device, with settings as tests/standin/driver.cpp lists them.
class StandIn {
 public:
  explicit StandIn(const std::string& settings) : gpu_{driver(), configured(settings)} {}
  const cuda::Gpu& gpu() const { return gpu_; }

 private:
  static const cuda::Driver& driver() {
    static const cuda::Driver loaded{standin_folder() + "/libcuda.so.1"};
    return loaded;
  }
  /// Sets the settings, which cuInit reads. @return  the number of the device
  static int configured(const std::string& settings) {
    setenv("TIDEPOOL_STANDIN", settings.c_str(), 1);
    return 0;
  }

  cuda::Gpu gpu_;
};

}  // namespace tidepool::tests
