#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace tidepool::native {

/// Whether an address lies in a private mapping of a file, as weights do that safetensors or torch.load(mmap=True)
/// read.
inline bool is_mapped_privately(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, inode = 0;
    char access[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &begin, &end, access, &inode) == 4 && begin <= wanted &&
        wanted < end)
      return access[3] == 'p' && inode != 0;
  }
  return false;
}

/// Whether others than PyTorch know the memory: NumPy's, or that of a C++ program (at::from_blob).
inline bool is_of_others(const c10::DataPtr& memory) {
  static const c10::DeleterFnPtr deleter = c10::InefficientStdFunctionContext::makeDataPtr(
                                               nullptr, [](void*) {}, c10::DeviceType::CPU)
                                               .get_deleter();
  return memory.get_context() == nullptr || memory.get_deleter() == deleter;
}

/// Whether a storage that PyTorch refuses to resize is in the pages of a file, and its content may move all the same:
/// if the mapping is private, no other process sees what is written to it, and nothing in this one but the storage.
inline bool is_in_private_file(const c10::StorageImpl& storage) {
  const c10::DataPtr& memory = const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
  return storage.device_type() == c10::DeviceType::CPU && !is_of_others(memory) && is_mapped_privately(memory.get());
}

}  // namespace tidepool::native
