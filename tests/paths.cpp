#include "tests/paths.hpp"

namespace tidepool::paths {

std::string source_folder() { return TIDEPOOL_SOURCE_DIR; }
std::string program() { return TIDEPOOL_PROGRAM; }
std::string dry_job() { return TIDEPOOL_DRY_JOB; }
std::string recorder_library() { return TIDEPOOL_INJECT; }
std::string fake_job() { return TIDEPOOL_FAKE_JOB; }
std::string fake_cupti() { return TIDEPOOL_FAKE_CUPTI; }
std::string real_cupti_job() { return TIDEPOOL_REAL_CUPTI; }
std::string real_cuda_job() { return TIDEPOOL_REAL_CUDA; }

}  // namespace tidepool::paths
