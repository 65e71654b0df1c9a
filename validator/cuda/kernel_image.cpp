#include "validator/cuda/kernel_image.hpp"

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
namespace {
constexpr unsigned char tidepool_kernels[16] = {};
constexpr const unsigned char* tidepool_kernels_end = tidepool_kernels;
}  // namespace
#endif

namespace tidepool::cuda {

std::span<const unsigned char> kernel_image() { return {tidepool_kernels, tidepool_kernels_end}; }

bool has_kernels() { return !kernel_image().empty(); }

}  // namespace tidepool::cuda
