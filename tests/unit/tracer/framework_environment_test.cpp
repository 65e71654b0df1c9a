#include "tracer/framework_environment.hpp"

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "traces/base/error.hpp"

namespace tidepool::framework_environment_test {

TEST_CASE("JAX and TensorFlow are told to use CUDA's allocators instead of pools of their own") {
  CHECK(framework_environment("torch").empty());
  CHECK(framework_environment("jax").at("XLA_PYTHON_CLIENT_ALLOCATOR") == "platform");
  CHECK(framework_environment("tf") == framework_environment("tensorflow"));
  CHECK(framework_environment("tf").at("TF_GPU_ALLOCATOR") == "cuda_malloc_async");
  CHECK_THROWS_WITH(framework_environment("mxnet"),
                    "--framework: 'mxnet' is no framework known here; expected jax, tensorflow (tf) or torch");
}

TEST_CASE("record --framework sets the framework's environment variables") {
  const ScratchFolder folder;
  const ProgramResult result = run_program({"record", "-o", folder.file("a.tide"), "--no-gpu", "--torch", "--framework",
                                            "jax", "--", "sh", "-c", "echo $XLA_PYTHON_CLIENT_ALLOCATOR"});
  CHECK(result.out == "platform\n");
}

}  // namespace tidepool::framework_environment_test
