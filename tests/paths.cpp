#include "tests/paths.hpp"

namespace tidepool::paths {

std::string source_folder() { return paths::source_folder(); }
std::string program() { return paths::program(); }
std::string dry_job() { return paths::dry_job(); }
std::string recorder_library() { return paths::recorder_library(); }
std::string fake_job() { return TIDEPOOL_FAKE_JOB; }
std::string fake_cupti() { return TIDEPOOL_FAKE_CUPTI; }
std::string real_cupti_job() { return paths::real_cupti_job(); }
std::string real_cuda_job() { return paths::real_cuda_job(); }

}  // namespace tidepool::paths
