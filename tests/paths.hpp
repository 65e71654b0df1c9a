// Paths of the source tree and of what the build made for the tests.
#pragma once

#include <string>

namespace tidepool::paths {

std::string source_folder();  ///< the root of the tree
std::string program();        ///< build/tidepool
std::string dry_job();        ///< a CUDA program for the dry device
// These are "" if the recorder for GPUs was not built.
std::string recorder_library();  ///< libtidepool_inject.so
std::string fake_job();          ///< a job for the fake libraries of CUDA
std::string fake_cupti();
std::string real_cupti_job();  ///< a program that asks NVIDIA's libcupti
std::string real_cuda_job();   ///< a program that asks NVIDIA's libcuda

}  // namespace tidepool::paths
