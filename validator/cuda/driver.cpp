#include "validator/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tidepool::cuda {

Library::Library(const std::string& path) : handle_{dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)} {
  if (handle_ == nullptr) throw Error{0, fmt::format("{}; no NVIDIA driver is installed here", dlerror())};
}

// The driver stays loaded after this, by RTLD_NODELETE: a device that hangs may still hold memory that the driver must
// know.
Library::~Library() { dlclose(handle_); }

void* Library::find(const char* name) const {
  if (void* const found = dlsym(handle_, name)) return found;
  throw Error{0, fmt::format("the NVIDIA driver has no function {}; expected one for CUDA 12.0 or later", name)};
}

Driver::Driver(const std::string& path) : library_{path} {}

std::string Driver::text(Status status) const {
  const char *name = nullptr, *meaning = nullptr;
  if (error_name.status(status, &name) != kSuccess || name == nullptr) return fmt::format("error {}", status);
  if (error_string.status(status, &meaning) != kSuccess || meaning == nullptr) return name;
  return fmt::format("{} ({})", name, meaning);
}

void Driver::fail(Status status, const std::string& what) const {
  throw Error{status, fmt::format("{}: {}", what, text(status))};
}

}  // namespace tidepool::cuda
