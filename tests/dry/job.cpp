// A program that uses the CUDA runtime like other programs, to run against the dry device. If a check fails, it
// prints the line of the check and exits with 3. With "fork" as its argument, it only forks while it launches. With
// "no-device", it expects to see no device. With "modules", it loads kernels by the driver's interface, as Triton does.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_binary.hpp"

namespace {

struct Dim3 {
  unsigned x, y, z;
};

template <class Function>
Function* entry(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Function*>(found);
}

/// Calls a function of CUDA's libraries by name, as a program that is linked with them would.
template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  return entry<int(Arguments...)>(name)(arguments...);
}

void expect(bool held, int line) {
  if (held) return;
  std::fprintf(stderr, "job: line %d\n", line);
  std::exit(3);
}

// Host stubs: only their addresses count.
void axpy_stub() {}
void twice_stub() {}

void register_kernels() {
  static const std::string fat = tidepool::test::fat_binary(
      {{80, tidepool::test::cubin({{"_Z4axpyiPKfPf", {{0, 4}, {8, 8}, {16, 8}}, 30, 0, 256}})},
       {90, tidepool::test::cubin(
                {{"_Z4axpyiPKfPf", {{0, 4}, {8, 8}, {16, 8}}, 32, 2048, 256}, {"twice", {{0, 24}}, 16}})}},
      tidepool::test::Packing::kZstd);
  static struct {
    int magic = 0x466243b1, version = 1;
    const void* data = fat.data();
    void* rest = nullptr;
  } wrapper;
  void** const binary = entry<void**(void*)>("__cudaRegisterFatBinary")(&wrapper);
  using Register = void(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
  auto* const add = entry<Register>("__cudaRegisterFunction");
  add(binary, reinterpret_cast<const char*>(&axpy_stub), nullptr, "_Z4axpyiPKfPf", -1, nullptr, nullptr, nullptr,
      nullptr, nullptr);
  add(binary, reinterpret_cast<const char*>(&twice_stub), nullptr, "twice", -1, nullptr, nullptr, nullptr, nullptr,
      nullptr);
  entry<void(void**)>("__cudaRegisterFatBinaryEnd")(binary);
}

void launch(void (*stub)(), void** arguments, void* stream) {
  call("__cudaPushCallConfiguration", Dim3{8, 1, 1}, Dim3{128, 1, 1}, std::size_t{0}, stream);
  Dim3 grid{}, block{};
  std::size_t shared = 0;
  void* to = nullptr;
  expect(call("__cudaPopCallConfiguration", &grid, &block, &shared, static_cast<void*>(&to)) == 0, __LINE__);
  expect(to == stream && grid.x == 8 && block.x == 128, __LINE__);
  expect(call("cudaLaunchKernel", reinterpret_cast<const void*>(stub), grid, block, arguments, shared, to) == 0,
         __LINE__);
}

void kernels_and_copies() {
  constexpr std::size_t kBytes = 1 << 20;
  float *x = nullptr, *y = nullptr;
  expect(call("cudaMalloc", reinterpret_cast<void**>(&x), kBytes) == 0, __LINE__);
  expect(call("cudaMalloc", reinterpret_cast<void**>(&y), 4 * kBytes) == 0, __LINE__);
  std::vector<char> there(kBytes), back(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) there[i] = static_cast<char>(i * 7);
  expect(call("cudaMemcpy", static_cast<void*>(x), static_cast<const void*>(there.data()), kBytes, 1) == 0, __LINE__);
  int n = 1000;
  void* axpy[] = {&n, &x, &y};
  launch(&axpy_stub, axpy, nullptr);
  struct {
    std::uint64_t padding;
    float *first, *second;
  } both{reinterpret_cast<std::uint64_t>(x) + (64 << 20), x, y + 10};  // what happens to lie in it is an address
  void* twice[] = {&both};
  launch(&twice_stub, twice, nullptr);
  expect(call("cudaMemset", static_cast<void*>(y), 1, kBytes) == 0, __LINE__);
  expect(call("cudaMemcpy", static_cast<void*>(back.data()), static_cast<const void*>(x), kBytes, 2) == 0, __LINE__);
  expect(back == there, __LINE__);

  void* handle = nullptr;
  expect(call("cublasCreate_v2", &handle) == 0, __LINE__);
  const float one = 1, zero = 0;
  using Product = int(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*,
                      float*, int);
  auto* const product = entry<Product>("cublasSgemm_v2");
  expect(product(handle, 0, 0, 100, 200, 50, &one, x, 100, x, 50, &zero, y, 100) == 0, __LINE__);
  expect(product(handle, 0, 0, 100, 200, 50, &one, x, 100, x, 50, &one, y, 100) == 0, __LINE__);
  expect(call("cublasDestroy_v2", handle) == 0, __LINE__);

  int blocks = 0;
  expect(call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", &blocks, reinterpret_cast<const void*>(&axpy_stub), 128,
              std::size_t{0}) == 0,
         __LINE__);
  expect(blocks == 16, __LINE__);  // 65536 registers / (32 * 128)
  expect(call("cudaFree", static_cast<void*>(x)) == 0, __LINE__);
  expect(call("cudaFree", static_cast<void*>(x)) == 1, __LINE__);
  expect(call("cudaGetLastError") == 1 && call("cudaGetLastError") == 0, __LINE__);
  expect(call("cudaFree", static_cast<void*>(y)) == 0, __LINE__);
}

void streams_and_graphs() {
  void *one = nullptr, *two = nullptr, *event = nullptr, *graph = nullptr, *executable = nullptr;
  expect(call("cudaStreamCreateWithPriority", &one, 1u, -1) == 0, __LINE__);
  expect(call("cudaStreamCreateWithFlags", &two, 1u) == 0, __LINE__);
  expect(call("cudaEventCreateWithFlags", &event, 2u) == 0, __LINE__);
  char* z = nullptr;
  expect(call("cudaMallocAsync", reinterpret_cast<void**>(&z), std::size_t{8192}, one) == 0, __LINE__);
  expect(call("cudaEventRecord", event, one) == 0, __LINE__);
  expect(call("cudaStreamWaitEvent", two, event, 0u) == 0, __LINE__);
  expect(call("cudaMemsetAsync", static_cast<void*>(z), 5, std::size_t{4096}, two) == 0, __LINE__);

  void* later = nullptr;  // events on a stream without work happen when they are recorded
  float milliseconds = 0;
  expect(call("cudaEventCreate", &later) == 0, __LINE__);
  usleep(2000);
  expect(call("cudaEventRecord", later, one) == 0, __LINE__);
  expect(call("cudaEventElapsedTime", &milliseconds, event, later) == 0, __LINE__);
  expect(milliseconds >= 2 && milliseconds < 1'000'000, __LINE__);
  expect(call("cudaEventDestroy", later) == 0, __LINE__);

  expect(call("cudaStreamBeginCapture", one, 0) == 0, __LINE__);
  expect(call("cudaEventRecord", event, one) == 0, __LINE__);
  expect(call("cudaStreamWaitEvent", two, event, 0u) == 0, __LINE__);
  int capturing = 0;
  expect(call("cudaStreamIsCapturing", two, &capturing) == 0 && capturing == 1, __LINE__);
  expect(call("cudaMemcpyAsync", static_cast<void*>(z + 4096), static_cast<const void*>(z), std::size_t{4096}, 3,
              two) == 0,
         __LINE__);
  expect(z[4096] == 0, __LINE__);  // the copy was captured and has not run
  expect(call("cudaStreamEndCapture", one, &graph) == 0, __LINE__);
  expect(call("cudaGraphInstantiate", &executable, graph, 0ull) == 0, __LINE__);
  expect(call("cudaGraphLaunch", executable, one) == 0, __LINE__);
  expect(z[4096] == 5, __LINE__);
  z[4096] = 0;
  expect(call("cudaGraphLaunch", executable, one) == 0 && z[4096] == 5, __LINE__);
  expect(call("cudaGraphExecDestroy", executable) == 0 && call("cudaGraphDestroy", graph) == 0, __LINE__);
  expect(call("cudaFreeAsync", static_cast<void*>(z), one) == 0, __LINE__);
  expect(call("cudaEventDestroy", event) == 0, __LINE__);
  expect(call("cudaStreamDestroy", one) == 0 && call("cudaStreamDestroy", two) == 0, __LINE__);
}

/// Checks that a child can use the device and end, if it is forked while another thread launches.
void fork_while_another_thread_launches() {
  float* x = nullptr;
  expect(call("cudaMalloc", reinterpret_cast<void**>(&x), std::size_t{4096}) == 0, __LINE__);
  std::atomic<bool> stop{false}, started{false};
  std::thread other{[&] {
    int n = 1000;
    void* axpy[] = {&n, &x, &x};
    while (!stop) {
      launch(&axpy_stub, axpy, nullptr);
      started = true;
    }
  }};
  while (!started) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(200);
      unsetenv("TIDEPOOL_RAW");  // only this program is recorded, not its children
      void* more = nullptr;
      std::exit(call("cudaMalloc", &more, std::size_t{4096}) + call("cudaFree", more));
    }
    int status = -1;
    expect(waitpid(child, &status, 0) == child && status == 0, __LINE__);
  }
  stop = true;
  other.join();
  expect(call("cudaFree", static_cast<void*>(x)) == 0, __LINE__);
}

void memory_limits() {
  std::size_t free = 0, total = 0, later = 0;
  expect(call("cudaMemGetInfo", &free, &total) == 0, __LINE__);
  expect(total == std::size_t{1} << 30, __LINE__);
  void* all = nullptr;
  expect(call("cudaMalloc", &all, free + 1) == 2 && all == nullptr, __LINE__);
  expect(std::strcmp(entry<const char*(int)>("cudaGetErrorString")(call("cudaGetLastError")), "out of memory") == 0,
         __LINE__);
  expect(call("cudaMalloc", &all, free) == 0, __LINE__);
  std::uint64_t said = ~std::uint64_t{0};
  expect(call("cudaMemPoolGetAttribute", &all, 1, static_cast<void*>(&said)) == 0, __LINE__);
  expect(said == ~std::uint64_t{0} << 32, __LINE__);  // a reuse policy is an int: 4 of the 8 bytes
  expect(call("cudaMemPoolGetAttribute", &all, 4, static_cast<void*>(&said)) == 0 && said == 0, __LINE__);
  expect(call("cudaMemPoolGetAttribute", &all, 7, static_cast<void*>(&said)) == 0 && said == free, __LINE__);
  expect(call("cudaMemGetInfo", &later, &total) == 0 && later == 0, __LINE__);
  expect(call("cudaFree", all) == 0, __LINE__);

  // The most reserved bytes (6) and used bytes (8) of the pool, which only 0 resets, each alone.
  const auto most = [&](int attribute) {
    expect(call("cudaMemPoolGetAttribute", &all, attribute, static_cast<void*>(&said)) == 0, __LINE__);
    return said;
  };
  expect(most(6) == free && most(8) == free, __LINE__);
  std::uint64_t reset = 1;
  expect(call("cudaMemPoolSetAttribute", &all, 8, static_cast<void*>(&reset)) == 1, __LINE__);
  reset = 0;
  expect(call("cudaMemPoolSetAttribute", &all, 8, static_cast<void*>(&reset)) == 0, __LINE__);
  expect(most(6) == free && most(8) == 0, __LINE__);
}

/// Checks the answers to a program that sees no device.
void no_devices() {
  int devices = -1;
  expect(call("cudaGetDeviceCount", &devices) == 100 && devices == 0, __LINE__);
  expect(std::strcmp(entry<const char*(int)>("cudaGetErrorName")(100), "cudaErrorNoDevice") == 0, __LINE__);
  expect(call("cuInit", 0u) == 100, __LINE__);
  expect(call("cudaSetDevice", 0) == 101, __LINE__);
}

void driver_entry_points() {
  constexpr std::size_t kPage = 2 << 20;
  const auto driver = [](const char* name) {
    void* function = nullptr;
    int found = -1;
    expect(call("cudaGetDriverEntryPointByVersion", name, &function, 12000u, 0ull, &found) == 0 && found == 0,
           __LINE__);
    return function;
  };
  std::uint64_t address = 0, handle = 0;
  using Reserve = int(std::uint64_t*, std::size_t, std::size_t, std::uint64_t, unsigned long long);
  expect(reinterpret_cast<Reserve*>(driver("cuMemAddressReserve"))(&address, 8 * kPage, 0, 0, 0) == 0, __LINE__);
  expect(reinterpret_cast<int (*)(std::uint64_t*, std::size_t, const void*, unsigned long long)>(driver("cuMemCreate"))(
             &handle, kPage, nullptr, 0) == 0,
         __LINE__);
  expect(reinterpret_cast<int (*)(std::uint64_t, std::size_t, std::size_t, std::uint64_t, unsigned long long)>(
             driver("cuMemMap"))(address + kPage, kPage, 0, handle, 0) == 0,
         __LINE__);
  *reinterpret_cast<volatile char*>(address + kPage) = 1;
  expect(reinterpret_cast<int (*)(std::uint64_t, std::size_t)>(driver("cuMemUnmap"))(address + kPage, kPage) == 0,
         __LINE__);
  expect(reinterpret_cast<int (*)(std::uint64_t)>(driver("cuMemRelease"))(handle) == 0, __LINE__);
  for (int i = 0; i < 2; ++i) expect(reinterpret_cast<int (*)()>(driver("cuFrobnicate"))() == 801, __LINE__);
}

/// Launches kernels of a cubin, a fat binary and PTX, which the program loads itself.
void driver_modules() {
  const std::string elf = tidepool::test::cubin(
                        {{"fused", {{0, 8}, {8, 8}, {16, 4}}, 40, 4096, 128}, {"mapped", {{0, 128}}, 24}}),
                    fat = tidepool::test::fat_binary({{90, elf}}, tidepool::test::Packing::kZstd),
                    ptx = ".version 8.0\n.target sm_90\n";
  const auto function = [](const std::string& image, const char* name) {
    void *module = nullptr, *function = nullptr;
    expect(call("cuModuleLoadData", &module, static_cast<const void*>(image.data())) == 0, __LINE__);
    expect(call("cuModuleGetFunction", &function, module, "other") == (image[0] == '.' ? 0 : 500), __LINE__);
    expect(call("cuModuleGetFunction", &function, module, name) == 0, __LINE__);
    expect(call("cuModuleUnload", module) == 0, __LINE__);  // the kernel stays known
    void* none = nullptr;
    expect(call("cuModuleUnload", module) == 400 && call("cuModuleGetFunction", &none, module, name) == 400, __LINE__);
    return function;
  };
  void *const fused = function(elf, "fused"), *const packed = function(fat, "fused"),
              *const mapped = function(elf, "mapped"), *const unknown = function(ptx, "unknown");
  int value = -1;
  for (const auto& [attribute, wanted] : {std::pair{0, 128}, std::pair{1, 4096}, std::pair{3, 0}, std::pair{4, 40}})
    expect(call("cuFuncGetAttribute", &value, attribute, fused) == 0 && value == wanted, __LINE__);
  expect(call("cuFuncGetAttribute", &value, 0, static_cast<void*>(&value)) == 400, __LINE__);
  // 227 KiB of a multiprocessor hold 4 KiB of static, 49 KiB of dynamic and 1 KiB of reserved shared memory 4 times.
  expect(
      call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &value, fused, 128, std::size_t{49} << 10) == 0 && value == 4,
      __LINE__);

  char* x = nullptr;
  expect(call("cudaMalloc", reinterpret_cast<void**>(&x), std::size_t{1} << 20) == 0, __LINE__);
  const auto address = reinterpret_cast<std::uint64_t>(x);
  std::uint64_t said = 0;
  expect(call("cuPointerGetAttribute", static_cast<void*>(&said), 3, address + 8) == 0 && said == address + 8,
         __LINE__);
  expect(call("cuPointerGetAttribute", static_cast<void*>(&said), 11, address + 8) == 0 && said == address, __LINE__);
  expect(call("cuPointerGetAttribute", static_cast<void*>(&said), 3, reinterpret_cast<std::uint64_t>(&said)) == 1,
         __LINE__);  // host memory that CUDA does not know: Triton refuses it
  void *stream = nullptr, *graph = nullptr;
  expect(call("cudaStreamCreateWithFlags", &stream, 1u) == 0, __LINE__);
  expect(call("cuStreamIsCapturing", stream, &value) == 0 && value == 0, __LINE__);

  int n = 7;
  char* y = x + 4096;
  void* arguments[] = {&x, &y, &n};
  using Launch =
      int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  auto* const launch_kernel = entry<Launch>("cuLaunchKernel");
  expect(launch_kernel(fused, 3, 2, 1, 128, 1, 1, 512, stream, arguments, nullptr) == 0, __LINE__);
  struct {
    char *x, *y;
    int n;
  } buffer{x, y, n};
  std::size_t bytes = sizeof buffer;
  entry<void(const void*, const char*)>("tidepool_kernel_uses")(packed, "rb-");
  void* extra[] = {reinterpret_cast<void*>(1), &buffer, reinterpret_cast<void*>(2), &bytes, nullptr};
  expect(launch_kernel(packed, 1, 1, 1, 128, 1, 1, 0, stream, nullptr, extra) == 0, __LINE__);
  alignas(64) char map[128];
  const std::uint64_t extents[] = {64, 64}, strides[] = {256};
  const unsigned box[] = {16, 16}, steps[] = {1, 1};
  expect(call("cuTensorMapEncodeTiled", static_cast<void*>(map), 7, 2u, static_cast<void*>(x), extents, strides, box,
              steps, 0, 0, 0, 0) == 0,
         __LINE__);
  struct {
    unsigned grid[3] = {1, 1, 1}, block[3] = {128, 1, 1}, shared = 0;
    void *stream = nullptr, *attributes = nullptr;
    unsigned count = 0;
  } config;
  void* maps[] = {map};
  expect(call("cuLaunchKernelEx", static_cast<const void*>(&config), mapped, static_cast<void**>(maps),
              static_cast<void**>(nullptr)) == 0,
         __LINE__);
  expect(launch_kernel(unknown, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) == 0, __LINE__);
  expect(launch_kernel(&config, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) == 400, __LINE__);

  expect(call("cudaStreamBeginCapture", stream, 0) == 0, __LINE__);
  expect(call("cuStreamIsCapturing", stream, &value) == 0 && value == 1, __LINE__);
  expect(call("cudaStreamEndCapture", stream, &graph) == 0 && call("cudaGraphDestroy", graph) == 0, __LINE__);
  expect(call("cudaStreamDestroy", stream) == 0 && call("cudaFree", static_cast<void*>(x)) == 0, __LINE__);
}

}  // namespace

int main(int count, char** words) {
  if (count > 1 && std::strcmp(words[1], "no-device") == 0) {
    no_devices();
    return 0;
  }
  int devices = 0;
  expect(call("cudaGetDeviceCount", &devices) == 0 && devices == 1, __LINE__);
  register_kernels();
  if (count > 1 && std::strcmp(words[1], "fork") == 0) {
    fork_while_another_thread_launches();
    return 0;
  }
  if (count > 1 && std::strcmp(words[1], "modules") == 0) {
    driver_modules();
    return 0;
  }
  memory_limits();
  kernels_and_copies();
  streams_and_graphs();
  driver_entry_points();
  return 0;
}
