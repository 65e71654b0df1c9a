// Device memory and pinned host memory that the runs of a plan share.
#include "validator/cuda/run_memory.hpp"

#include "tests/catch.hpp"
#include "tests/fake_cuda.hpp"

namespace tidepool::run_memory_test {

TEST_CASE("a run that needs no more memory than the one before uses its memory, and a larger one replaces it") {
  const tests::FakeDriver device{"memory=1048576,pinned=1048576"};
  const Bytes free = device.gpu().free_memory();
  cuda::RunMemory memory{device.gpu()};
  const cuda::Address arena = memory.arena(600'000_B);
  void* const pinned = memory.pinned(600'000_B);
  CHECK(device.gpu().free_memory() == free - 600'000_B);
  CHECK(memory.arena(600'000_B) == arena);
  CHECK(memory.arena(1'000_B) == arena);
  CHECK(memory.pinned(5_B) == pinned);
  CHECK(device.gpu().free_memory() == free - 600'000_B);
  memory.arena(700'000_B);  // the old and the new memory would not fit together
  memory.pinned(700'000_B);
  CHECK(device.gpu().free_memory() == free - 700'000_B);
  CHECK_THROWS_WITH(memory.arena(2_MiB), ContainsSubstring("the device has no 2 MiB for the arena; "));
}

}  // namespace tidepool::run_memory_test
