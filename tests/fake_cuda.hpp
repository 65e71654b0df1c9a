// A GPU for tests: the fake driver of tests/fake_cuda, loaded in the way in which programs load NVIDIA's driver.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/paths.hpp"
#include "validator/cuda/device.hpp"

namespace tidepool::tests {

/// The folder in which the dynamic linker finds the fake under the name of NVIDIA's driver.
inline std::string fake_cuda_folder() { return std::filesystem::path{paths::program()}.replace_filename("fake_cuda"); }

/// One fake device, with settings as tests/fake_cuda/driver.cpp lists them.
class FakeDriver {
 public:
  explicit FakeDriver(const std::string& settings) : gpu_{driver(), configured(settings)} {}
  const cuda::Gpu& gpu() const { return gpu_; }

 private:
  static const cuda::Driver& driver() {
    static const cuda::Driver loaded{fake_cuda_folder() + "/libcuda.so.1"};
    return loaded;
  }
  /// Sets the settings, which cuInit reads. @return  the number of the device
  static int configured(const std::string& settings) {
    setenv("TIDEPOOL_FAKE", settings.c_str(), 1);
    return 0;
  }

  cuda::Gpu gpu_;
};

}  // namespace tidepool::tests
