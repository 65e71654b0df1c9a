// Runs the tests. Exit code 0: all passed; 4: those that ran passed and some were skipped; 1: some failed.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "tests/skip.hpp"

/// The leaks that LeakSanitizer leaves out: CoinUtils 2.11 loses 48 bytes where its presolve looks for equal rows and
/// columns.
extern "C" const char* __lsan_default_suppressions() { return "leak:presolve_dupmajor\n"; }

int main(int argc, char** argv) {
  const int result = Catch::Session().run(argc, argv);
  if (result != 0) return 1;  // Catch2's own code is the number of failures, which may be 4
  return tidepool::tests::skipped_any ? tidepool::tests::kSkippedExitCode : 0;
}
