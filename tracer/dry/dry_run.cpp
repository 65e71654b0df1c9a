#include "tracer/dry/dry_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tracer/dry/device/device_count.hpp"
#include "tracer/dry/preset.hpp"
#include "traces/base/child_process.hpp"
#include "traces/base/error.hpp"
#include "traces/base/quantity.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool::dry {
namespace {

namespace fs = std::filesystem;

/// The folder of the libraries of the dry device: beside the program, or where they are installed.
std::string library_folder() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path(), above = here.parent_path();
  for (const fs::path& place :
       {here, above / "lib/tidepool", above / "lib64/tidepool", above / "lib/x86_64-linux-gnu/tidepool"})
    if (fs::exists(place / "libtidepool_dry.so")) return fs::canonical(place).string();
  refuse("--dry: no libtidepool_dry.so in {}; it is built with tidepool, and must lie beside it or be installed",
         here.string());
}

/// A folder for what a dry run compiles: below the program's own, or below that of temporary files. A run on a device
/// must not find there what a dry run took without measuring it.
std::string compiled_folder(const char* variable, const std::string& name) {
  if (const char* const own = std::getenv(variable); own != nullptr && *own != 0)
    return (fs::path{own} / "tidepool-dry").string();
  return (fs::temp_directory_path() / fmt::format("tidepool-dry-{}", getuid()) / name).string();
}

std::uint64_t capacity_of(const DryRun& run) {
  try {
    return static_cast<std::uint64_t>(parse_bytes(run.capacity).count());
  } catch (const InputError& error) {
    throw error.at("--capacity");
  }
}

/// @throws InputError  if the file is not one of at least two numbers, none negative and not all 0
void require_shares(const std::string& path) {
  std::ifstream file{path};
  if (!file) refuse("--routing: '{}'; expected balanced, zipf, worst, or a file with the shares of places", path);
  std::size_t count = 0;
  double sum = 0;
  for (std::string word; file >> word; ++count) {
    char* end = nullptr;
    const double share = std::strtod(word.c_str(), &end);
    if (*end != 0 || !(share >= 0) || std::isinf(share))
      refuse("{}: '{}'; expected numbers from 0, with blanks between them: the share of each place", path, word);
    sum += share;
  }
  if (count < 2 || sum <= 0) refuse("{}: {} numbers, in all {}; expected two or more, above 0", path, count, sum);
}

}  // namespace

std::string device_names() {
  std::string names;
  for (const DevicePreset& preset : device_presets()) names += (names.empty() ? "" : ", ") + std::string{preset.name};
  return names;
}

std::map<std::string, std::string> dry_environment(const DryRun& run) {
  const DevicePreset& preset = device_preset(run.device);
  if (!run.capacity.empty() && capacity_of(run) <= preset.context_bytes)
    refuse("--capacity: {} is no room for a program; driver and context keep {} MiB of a device like {}", run.capacity,
           preset.context_bytes >> 20, run.device);
  if (run.devices < 1 || run.devices > kMostDevices)
    refuse("--devices: {}; expected 1 to {}", run.devices, kMostDevices);
  if (run.placement != "lowest-first" && run.placement != "top-down")
    refuse("--placement: '{}'; expected lowest-first or top-down", run.placement);
  const bool named = run.routing == "balanced" || run.routing == "zipf" || run.routing == "worst";
  if (!named) require_shares(run.routing);
  const std::string folder = library_folder();
  if (folder.find_first_of(": ") != std::string::npos)
    refuse("--dry: {}: LD_PRELOAD takes no path with a blank or a colon", folder);
  const std::string libraries = folder + "/libtidepool_dry.so:" + folder + "/libtidepool_dry_nvml.so";
  return {{"LD_PRELOAD", prepended("LD_PRELOAD", libraries)},
          {"TIDEPOOL_DRY_DEVICE", run.device},
          {"TIDEPOOL_DRY_CAPACITY", run.capacity},
          {"TIDEPOOL_DRY_PLACEMENT", run.placement},
          {"TIDEPOOL_ROUTING", named ? run.routing : fs::absolute(run.routing).string()},
          {"CUDA_VISIBLE_DEVICES", device_list(run.devices)},
          // PyTorch has two interfaces to cuDNN; the dry device answers the older one.
          {"TORCH_CUDNN_V8_API_DISABLED", "1"},
          {"TRITON_LIBCUDA_PATH", folder + "/driver"},
          // Then Inductor loads kernels by Triton's class, which knows their code.
          {"TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER", "0"},
          {"TORCHINDUCTOR_CACHE_DIR", compiled_folder("TORCHINDUCTOR_CACHE_DIR", "inductor")},
          {"TRITON_CACHE_DIR", compiled_folder("TRITON_CACHE_DIR", "triton")},
          // If a kernel cannot be compiled, Inductor would wait for its compile processes.
          {"TORCHINDUCTOR_COMPILE_THREADS", "1"}};
}

}  // namespace tidepool::dry
