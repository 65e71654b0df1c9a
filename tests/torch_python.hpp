// A Python with PyTorch, for tests of code that runs in PyTorch jobs.
#pragma once

#include <cstdlib>
#include <string>

#include "tests/catch.hpp"
#include "tests/skip.hpp"

namespace tidepool::tests {

/// A Python that has PyTorch for CUDA: $TIDEPOOL_TORCH_PYTHON or python3. Without one the result is empty and the test
/// is skipped; with $TIDEPOOL_REQUIRE_TORCH it fails.
inline std::string torch_python() {
  const char* const given = std::getenv("TIDEPOOL_TORCH_PYTHON");
  const std::string python = given != nullptr ? given : "python3";
  const std::string ask = python + " -c 'import torch; assert torch.version.cuda' >/dev/null 2>&1";
  if (std::system(ask.c_str()) == 0) return python;
  if (std::getenv("TIDEPOOL_REQUIRE_TORCH") != nullptr) FAIL(python + " has no PyTorch for CUDA");
  skip(python + " has no PyTorch for CUDA (TIDEPOOL_TORCH_PYTHON names another)");
  return {};
}

}  // namespace tidepool::tests
