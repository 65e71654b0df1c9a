#include "tracer/dry/device/device_properties.hpp"

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/occupancy.hpp"

namespace tidepool::dry {
namespace {

constexpr int kWarp = 32, kThreadsPerBlock = 1024, kMostBlocks = 65535, kRegisters = 65536;
constexpr int kMostX = std::numeric_limits<int>::max();
constexpr std::size_t kSharedPerBlock = 48 << 10, kConstant = 64 << 10;

/// The first members of cudaDeviceProp. They are the same in CUDA 12 and 13; some later members exist only in CUDA 12.
struct Name {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_mask;
};

/// Writes members one after the other as a compiler lays them out.
class Writer {
 public:
  explicit Writer(void* target) : target_{static_cast<char*>(target)} {}

  template <class T>
  void put(T value) {
    at_ = (at_ + alignof(T) - 1) / alignof(T) * alignof(T);
    std::memcpy(target_ + at_, &value, sizeof value);
    at_ += sizeof value;
  }
  template <class T>
  void put(std::initializer_list<T> values) {
    for (const T& value : values) put(value);
  }
  void skip_ints(int count) {
    for (int i = 0; i < count; ++i) put(0);
  }

 private:
  char* target_;
  std::size_t at_ = 0;
};

}  // namespace

int runtime_version() {
  static const int version = [] {
    for (const auto& [library, number] : {std::pair{"libcudart.so.12", 12080}, std::pair{"libcudart.so.13", 13000}})
      if (void* const real = real_function(library, "cudaRuntimeGetVersion")) {
        int said = number;
        return reinterpret_cast<int (*)(int*)>(real)(&said) == kSuccess ? said : number;
      }
    return 13000;
  }();
  return version;
}

void write_properties(const DevicePreset& preset, int version, void* properties) {
  constexpr int kFirstWithoutClocks = 13000;
  const bool clocks = version < kFirstWithoutClocks;
  Name name{};
  preset.device_name.copy(name.name, sizeof name.name - 1);
  std::memcpy(name.uuid, "tidepool dry run", sizeof name.uuid);
  constexpr std::size_t kBytes12 = 1032, kBytes13 = 1008;  // sizeof(cudaDeviceProp)
  std::memset(properties, 0, clocks ? kBytes12 : kBytes13);
  Writer out{properties};
  out.put(name);
  out.put<std::size_t>({preset.total_bytes, kSharedPerBlock});
  out.put({kRegisters, kWarp});
  out.put<std::size_t>(kMostX);  // memPitch
  out.put({kThreadsPerBlock, kThreadsPerBlock, kThreadsPerBlock, 64, kMostX, kMostBlocks, kMostBlocks});
  if (clocks) out.put(1'500'000);  // clockRate, kHz
  out.put<std::size_t>(kConstant);
  out.put({preset.major, preset.minor});
  out.put<std::size_t>({512, 32});  // texture alignment and pitch
  if (clocks) out.put(1);           // deviceOverlap
  out.put(preset.multiprocessors);
  if (clocks) out.put(0);           // kernelExecTimeoutEnabled
  out.put({0, 1});                  // integrated, canMapHostMemory
  if (clocks) out.put(0);           // computeMode
  out.skip_ints(clocks ? 40 : 39);  // texture and surface limits: no kernel of a training step reads them
  out.put<std::size_t>(512);
  out.put({1, 1, 1, 0, 0, 0});  // concurrentKernels, ECC, PCI bus, device and domain, tcc
  out.put({3, 1});              // copy engines, unified addressing
  if (clocks) out.put(1'000'000);
  out.put({preset.bus_bits, static_cast<int>(preset.l2_bytes), 0, preset.threads_per_multiprocessor, 1, 1, 1});
  out.put<std::size_t>(preset.shared_per_multiprocessor);
  out.put({kRegisters, 1, 0, 0, 0});  // registers, managed memory, multi-GPU board and group, host atomics
  if (clocks) out.put(2);
  out.put({0, 1, 1, 1,
           1});  // pageable access, concurrent managed access, preemption, registered host pointers, cooperative
  if (clocks) out.put(0);  // cooperativeMultiDeviceLaunch
  out.put<std::size_t>(preset.shared_per_block_optin);
  out.put({0, 0, preset.blocks_per_multiprocessor, 0});
  out.put<std::size_t>(reserved_shared(preset));
  out.put(1);  // hostRegisterSupported
  out.skip_ints(3);
  out.put(1);  // memoryPoolsSupported
}

int device_attribute(const DevicePreset& preset, int attribute) {
  switch (attribute) {  // cudaDeviceAttr
    case 1:             // maxThreadsPerBlock
    case 2:             // maxBlockDimX
    case 3:
      return kThreadsPerBlock;
    case 4:
      return 64;
    case 5:  // maxGridDimX
    case 11:
      return kMostX;
    case 6:
    case 7:
      return kMostBlocks;
    case 8:
      return kSharedPerBlock;
    case 9:
      return kConstant;
    case 10:
      return kWarp;
    case 12:  // registers of a block
    case 82:
      return kRegisters;
    case 13:
      return 1'500'000;  // clockRate, kHz
    case 14:
      return 512;
    case 16:
      return preset.multiprocessors;
    case 36:
      return 1'000'000;  // memoryClockRate, kHz
    case 37:
      return preset.bus_bits;
    case 38:
      return static_cast<int>(preset.l2_bytes);
    case 39:
      return preset.threads_per_multiprocessor;
    case 40:
      return 3;  // copy engines
    case 75:
      return preset.major;
    case 76:
      return preset.minor;
    case 81:
      return static_cast<int>(preset.shared_per_multiprocessor);
    case 87:
      return 2;
    case 97:
      return static_cast<int>(preset.shared_per_block_optin);
    case 106:
      return preset.blocks_per_multiprocessor;
    case 111:
      return static_cast<int>(reserved_shared(preset));
    case 15:  // gpuOverlap
    case 19:  // canMapHostMemory
    case 31:  // concurrentKernels
    case 41:  // unifiedAddressing
    case 78:  // streamPriorities
    case 79:
    case 80:
    case 83:  // managedMemory
    case 89:  // concurrentManagedAccess
    case 90:
    case 91:
    case 95:   // cooperativeLaunch
    case 99:   // hostRegister
    case 102:  // virtual memory management
    case 115:
      return 1;  // memory pools
    case 120:
      return preset.major >= 9 ? 1 : 0;  // clusters
    default:
      return 0;
  }
}

}  // namespace tidepool::dry
