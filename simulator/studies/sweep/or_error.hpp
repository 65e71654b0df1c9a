// Conversion of exceptions to results, so that a failing run does not end the others.
#pragma once

#include <exception>
#include <new>

#include "simulator/run.hpp"

namespace tidepool {

/// The result of run(). Any exception becomes Outcome::kError with its message.
template <class Run>
Result or_error(Run run) {
  Result failed;
  failed.outcome = Outcome::kError;
  try {
    return run();
  } catch (const std::bad_alloc&) {
    failed.message = "the run needs more memory than this host has";
  } catch (const std::exception& error) {
    failed.message = error.what();
  } catch (...) {
    failed.message = "the policy threw an object that is no std::exception";
  }
  return failed;
}

}  // namespace tidepool
