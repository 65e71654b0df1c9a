// One GPU: its memory, streams, events and kernels, each released by its owner. The compiled kernels of kernels.cu.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "traces/base/quantity.hpp"
#include "validator/cuda/driver.hpp"

namespace tidepool::cuda {

/// A GPU with the kernels of kernels.cu. The GPU's context is current in the thread that made the object.
class Gpu {
 public:
  /// @throws Error  if there is no such device, or it cannot run the kernels
  Gpu(const Driver& driver, int index);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Driver& driver() const { return driver_; }
  const std::string& name() const { return name_; }
  Device device() const { return device_; }
  unsigned processors() const { return processors_; }  ///< multiprocessors
  Bytes free_memory() const { return memory().first; }
  Bytes total_memory() const { return memory().second; }
  /// @throws Error  if kernels.cu has no kernel of this name
  Function kernel(const char* name) const;
  /// "NVIDIA H100 80GB HBM3, driver for CUDA 13.0"
  std::string description() const;

  /// From now on, nothing is released: on a device that hangs, a release would never return.
  void abandon() const { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }

 private:
  std::pair<Bytes, Bytes> memory() const;

  const Driver& driver_;
  Device device_ = 0;
  Module module_ = nullptr;
  std::string name_;
  unsigned processors_ = 1;
  mutable bool abandoned_ = false;
};

/// A handle and the function that releases it, unless the GPU was abandoned. Must not outlive the GPU.
template <class Handle>
class Owned {
 public:
  Owned(const Gpu& gpu, const Call<Handle>& give_back, Handle handle)
      : gpu_{&gpu}, give_back_{&give_back}, handle_{handle} {}
  ~Owned() {
    // A failing device fails here too; the failure is ignored.
    if (handle_ != Handle{} && !gpu_->abandoned()) give_back_->status(handle_);
  }
  Owned(Owned&& other) noexcept
      : gpu_{other.gpu_}, give_back_{other.give_back_}, handle_{std::exchange(other.handle_, Handle{})} {}
  Owned& operator=(Owned&&) = delete;
  Handle get() const { return handle_; }

 private:
  const Gpu* gpu_;
  const Call<Handle>* give_back_;
  Handle handle_;
};

Owned<Stream> make_stream(const Gpu& gpu);
/// @param timed  whether the event records its time
Owned<Event> make_event(const Gpu& gpu, bool timed);
/// Memory of the device; null for a size of 0.
/// @param what  its purpose, for the message
/// @throws Error  "the device has no 12 GiB for the arena; 8 GiB of 80 GiB are free: cuMemAlloc_v2: ..."
Owned<Address> allocate(const Gpu& gpu, Bytes size, const char* what);
/// Pinned memory of the host, which kernels reach at the same address; null for a size of 0.
/// @throws Error  "the host has no 12 GiB of pinned memory for copies: cuMemHostAlloc: ..."
Owned<void*> allocate_pinned(const Gpu& gpu, Bytes size);

/// Launches a kernel with these arguments. Does not wait for its end. @throws Error  if the driver refuses it
template <class... Args>
void launch(const Gpu& gpu, Function kernel, unsigned blocks, unsigned threads, Stream stream, Args... args) {
  std::array<void*, sizeof...(Args)> pointers{&args...};
  gpu.driver()(gpu.driver().launch, kernel, blocks, 1U, 1U, threads, 1U, 1U, 0U, stream, pointers.data(),
               static_cast<void**>(nullptr));
}

/// Polls an event. @return  whether it has happened within `patience` of wall time; a time in which the process is
///                          stopped does not count
/// @throws Error  if the device has failed
bool wait_for(const Gpu& gpu, Event event, Nanos patience);

/// Time between two events that have happened.
Nanos elapsed(const Gpu& gpu, Event from, Event to);

/// Whether the program or the installation has the compiled kernels.
bool has_kernels();

/// The module for the driver to load; empty without kernels.
std::span<const unsigned char> kernel_image();

}  // namespace tidepool::cuda
