#include "tracer/dry/preset.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/base/nearest.hpp"

namespace tidepool::dry {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr double kPcie = 25e9, kPcie5 = 50e9;  // bytes/s that copies reach in one direction of PCIe 4 and 5 links

// Capability limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Rates: data sheets.
// Total bytes: as torch.cuda.get_device_properties or deviceQuery printed them on such devices in public reports. No
// report was found for the RTX PRO 5000: its total bytes are assumed to be the same share of its memory (48 GB) as
// those of the RTX PRO 6000. Reports of the RTX 3060 differ (11931 to 12044 MiB): the least counts. None was found for
// the RTX 4060: its total bytes are assumed to leave a reserve of 387 MiB, where the RTX 3060 leaves 357 MiB.
constexpr std::array kPresets{
    DevicePreset{"h100-80gb", "NVIDIA H100 80GB HBM3", 9, 0, 132, 81079 * kMiB, 520 * kMiB, 50 * kMiB, 227 * kKiB,
                 228 * kKiB, 2048, 32, 5120, 3.35e12, 989e12, 67e12, 450e9},
    DevicePreset{"h200", "NVIDIA H200", 9, 0, 132, 143156 * kMiB, 520 * kMiB, 60 * kMiB, 227 * kKiB, 228 * kKiB, 2048,
                 32, 6144, 4.8e12, 989e12, 67e12, 450e9},
    DevicePreset{"a100-80gb", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 81050 * kMiB, 420 * kMiB, 40 * kMiB, 163 * kKiB,
                 164 * kKiB, 2048, 32, 5120, 2.039e12, 312e12, 19.5e12, 300e9},
    DevicePreset{"a100-40gb", "NVIDIA A100-SXM4-40GB", 8, 0, 108, 40326 * kMiB, 420 * kMiB, 40 * kMiB, 163 * kKiB,
                 164 * kKiB, 2048, 32, 5120, 1.555e12, 312e12, 19.5e12, 300e9},
    DevicePreset{"rtx-3090", "NVIDIA GeForce RTX 3090", 8, 6, 82, 24245 * kMiB, 300 * kMiB, 6 * kMiB, 99 * kKiB,
                 100 * kKiB, 1536, 16, 384, 0.936e12, 71e12, 35.6e12, kPcie},
    DevicePreset{"rtx-4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 24210 * kMiB, 400 * kMiB, 72 * kMiB, 99 * kKiB,
                 100 * kKiB, 1536, 24, 384, 1.008e12, 165e12, 82.6e12, kPcie},
    DevicePreset{"rtx-4080", "NVIDIA GeForce RTX 4080", 8, 9, 76, 16049 * kMiB, 400 * kMiB, 64 * kMiB, 99 * kKiB,
                 100 * kKiB, 1536, 24, 256, 0.717e12, 97.5e12, 48.7e12, kPcie},
    DevicePreset{"rtx-3060", "NVIDIA GeForce RTX 3060", 8, 6, 28, 11931 * kMiB, 300 * kMiB, 3 * kMiB, 99 * kKiB,
                 100 * kKiB, 1536, 16, 192, 0.36e12, 25.5e12, 12.7e12, kPcie},
    DevicePreset{"rtx-4060", "NVIDIA GeForce RTX 4060", 8, 9, 24, 7805 * kMiB, 400 * kMiB, 24 * kMiB, 99 * kKiB,
                 100 * kKiB, 1536, 24, 128, 0.272e12, 30.2e12, 15.1e12, kPcie},
    DevicePreset{"b200", "NVIDIA B200", 10, 0, 148, 182630 * kMiB, 520 * kMiB, 126 * kMiB, 227 * kKiB, 228 * kKiB, 2048,
                 32, 7680, 7.7e12, 2250e12, 75e12, 900e9},
    DevicePreset{"rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 12, 0, 188, 97249 * kMiB,
                 450 * kMiB, 128 * kMiB, 99 * kKiB, 100 * kKiB, 1536, 24, 512, 1.792e12, 503e12, 125e12, kPcie5},
    DevicePreset{"rtx-pro-5000", "NVIDIA RTX PRO 5000 Blackwell", 12, 0, 110, 48624 * kMiB, 400 * kMiB, 96 * kMiB,
                 99 * kKiB, 100 * kKiB, 1536, 24, 384, 1.344e12, 258e12, 65e12, kPcie5},
    DevicePreset{"rtx-5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, 32117 * kMiB, 450 * kMiB, 96 * kMiB, 99 * kKiB,
                 100 * kKiB, 1536, 24, 512, 1.792e12, 209e12, 104.8e12, kPcie5},
    DevicePreset{"l40s", "NVIDIA L40S", 8, 9, 142, 45486 * kMiB, 400 * kMiB, 96 * kMiB, 99 * kKiB, 100 * kKiB, 1536, 24,
                 384, 0.864e12, 362e12, 91.6e12, kPcie},
    DevicePreset{"l4", "NVIDIA L4", 8, 9, 58, 22491 * kMiB, 300 * kMiB, 48 * kMiB, 99 * kKiB, 100 * kKiB, 1536, 24, 192,
                 0.3e12, 121e12, 30.3e12, kPcie},
    DevicePreset{"t4", "Tesla T4", 7, 5, 40, 14930 * kMiB, 120 * kMiB, 4 * kMiB, 64 * kKiB, 64 * kKiB, 1024, 16, 256,
                 0.32e12, 65e12, 8.1e12, kPcie},
};

}  // namespace

double host_link(const DevicePreset& preset) { return preset.major >= 9 ? kPcie5 : kPcie; }

std::span<const DevicePreset> device_presets() { return kPresets; }

const DevicePreset& device_preset(std::string_view name) {
  const auto found =
      std::find_if(kPresets.begin(), kPresets.end(), [&](const DevicePreset& p) { return p.name == name; });
  if (found != kPresets.end()) return *found;
  std::vector<std::string> known;
  for (const DevicePreset& p : kPresets) known.emplace_back(p.name);
  throw InputError{unknown_name("device", name, known)};
}

}  // namespace tidepool::dry
