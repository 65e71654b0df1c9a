// Loads a real libcuda, and checks that it has the functions that the validator and the recorder use. cuInit loads the
// recorder (CUDA_INJECTION64_PATH) even if there is no GPU.
//   real_cuda LIBCUDA     prints the version, the missing optional functions, and the answer of cuInit
// Ends with 1 and the reason if a required function is missing.
#include <cstdio>
#include <string>
#include <utility>

#include "tracer/inject/library.hpp"
#include "validator/cuda/driver.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const tidepool::cuda::Driver driver{argv[1]};
    tidepool::inject::DriverLibrary recorder;
    if (const std::string problem = recorder.load(); !problem.empty()) {
      std::printf("%s\n", problem.c_str());
      return 1;
    }
    int version = 0;
    driver.version.status(&version);
    std::printf("version %d\n", version);
    for (const auto& [name, there] : {std::pair{"cuFuncGetParamInfo", recorder.function_parameter != nullptr},
                                      std::pair{"cuKernelGetParamInfo", recorder.kernel_parameter != nullptr},
                                      std::pair{"cuFuncGetName", recorder.function_name != nullptr},
                                      std::pair{"cuKernelGetName", recorder.kernel_name != nullptr}})
      if (!there) std::printf("no %s\n", name);
    std::printf("cuInit %d\n", driver.init.status(0));
  } catch (const tidepool::cuda::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
