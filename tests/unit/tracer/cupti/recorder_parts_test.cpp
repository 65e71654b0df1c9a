// The parts of the CUPTI recorder that make decisions, tested without CUPTI.
#include <cstdint>
#include <vector>

#include "tests/catch.hpp"
#include "tracer/cupti/buffer_pool.hpp"
#include "tracer/cupti/driver_calls.hpp"
#include "tracer/cupti/iteration_window.hpp"

namespace tidepool::recorder_parts_test {

using namespace tidepool::cupti;

TEST_CASE("driver calls are recognised by name, with or without per-thread streams") {
  CHECK(driver_call("cuLaunchKernel") == DriverCall::kLaunchKernel);
  CHECK(driver_call("cuLaunchKernelEx_ptsz") == DriverCall::kLaunchKernelEx);
  CHECK(driver_call("cuMemcpyHtoD_v2_ptds") == DriverCall::kCopy);
  CHECK(driver_call("cuMemcpyHtoD") == DriverCall::kOther);  // 32-bit sizes: superseded in CUDA 3.2
  CHECK(driver_call("cuMemcpyBatchAsync_v2_ptsz") == DriverCall::kCopyBatch);
  CHECK(driver_call("cuMemsetD2D32Async") == DriverCall::kMemset2D32);
  CHECK(driver_call("cuCtxSynchronize") == DriverCall::kOther);
  CHECK(driver_call("") == DriverCall::kOther);
  CHECK(is_launch(DriverCall::kGraphLaunch));
  CHECK(is_launch(DriverCall::kMemset2D32));
  CHECK_FALSE(is_launch(DriverCall::kAlloc));
  CHECK_FALSE(is_launch(DriverCall::kTensorMapEncode));
}

TEST_CASE("calls of the runtime that launch work are outer calls, whatever their version") {
  for (const char* name :
       {"cudaLaunchKernel_v7000", "__cudaLaunchKernel_v13000", "___cudaLaunchKernel_v13000",
        "cudaLaunchKernelExC_ptsz_v11060", "cudaGraphLaunch_v10000", "cudaMemcpyAsync_v3020", "cudaMemsetAsync_v3020"})
    CHECK(is_outer_call(name));
  CHECK_FALSE(is_outer_call("cudaMalloc_v3020"));
  CHECK_FALSE(is_outer_call("cudaDeviceSynchronize_v3020"));
}

TEST_CASE("without a window of iterations everything is recorded") {
  IterationWindow window{0, 0};
  CHECK(window.begun());
  CHECK(window.contains(1));
  CHECK(window.boundary(10));
  CHECK(window.contains(5));
  CHECK(window.contains(~0U));
  CHECK_FALSE(window.ended());
}

TEST_CASE("a window of iterations contains the calls between its boundaries") {
  IterationWindow window{1, 2};
  CHECK_FALSE(window.begun());
  CHECK_FALSE(window.boundary(100));  // iteration 0 is skipped
  CHECK_FALSE(window.contains(100));
  CHECK(window.boundary(200));
  CHECK_FALSE(window.contains(200));  // the last call before the window, even if its record comes late
  CHECK(window.contains(201));
  CHECK(window.boundary(300));
  CHECK(window.contains(301));
  CHECK_FALSE(window.boundary(400));
  CHECK(window.ended());
  CHECK(window.contains(400));
  CHECK_FALSE(window.contains(401));
}

TEST_CASE("a window of iterations works across the wrap-around of correlation ids") {
  IterationWindow window{0, 1};
  window.boundary(0xfffffff0);
  CHECK(window.contains(0xfffffff1));
  CHECK(window.contains(5));
  CHECK_FALSE(window.contains(0xffffff00));
  window.boundary(10);
  CHECK(window.contains(10));
  CHECK_FALSE(window.contains(11));
}

TEST_CASE("a window without end contains all calls after its begin, however many") {
  IterationWindow window{1, 0};
  window.boundary(10);
  window.boundary(20);
  CHECK_FALSE(window.contains(20));
  CHECK(window.contains(21));
  for (const std::uint32_t last : {0x40000000U, 0x80000000U, 0xc0000000U, 0U, 0x40000000U}) {
    CHECK(window.boundary(last));
    CHECK(window.contains(last + 1));
  }
}

TEST_CASE("record buffers are zeroed, reused, and refused above their limit") {
  BufferPool pool{4096, 1, 2};
  std::uint8_t* const first = pool.take();
  std::uint8_t* const second = pool.take();
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(pool.take() == nullptr);
  CHECK(pool.refused() == 1);
  first[0] = first[99] = 7;
  pool.give(first, 100);
  std::uint8_t* const again = pool.take();
  CHECK(again == first);
  CHECK((again[0] == 0 && again[99] == 0));
  CHECK(pool.take() == nullptr);
  pool.give(again, 0);
  pool.give(second, 0);
}

}  // namespace tidepool::recorder_parts_test
