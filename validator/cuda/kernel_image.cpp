#include "validator/cuda/device.hpp"

#ifdef TIDEPOOL_KERNELS
asm(R"(
  .section .rodata
  .balign 64
  .globl tidepool_kernels, tidepool_kernels_end
  tidepool_kernels:
  .incbin ")" TIDEPOOL_KERNELS R"("
  tidepool_kernels_end:
  .previous
)");
extern "C" const unsigned char tidepool_kernels[];
extern "C" const unsigned char tidepool_kernels_end[];
#else
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>
#endif

namespace tidepool::cuda {

#ifdef TIDEPOOL_KERNELS
std::span<const unsigned char> kernel_image() { return {tidepool_kernels, tidepool_kernels_end}; }
#else
std::span<const unsigned char> kernel_image() {
  static const std::vector<unsigned char> image = [] {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    std::ifstream file{program.parent_path().parent_path() / "lib/tidepool/kernels.fatbin", std::ios::binary};
    return std::vector<unsigned char>{std::istreambuf_iterator<char>{file}, {}};
  }();
  static constexpr std::array<unsigned char, 16> kNothing{};  // drivers read the head of a module, even of an empty one
  return image.empty() ? std::span{kNothing.data(), 0} : std::span{image};
}
#endif

bool has_kernels() { return !kernel_image().empty(); }

}  // namespace tidepool::cuda
