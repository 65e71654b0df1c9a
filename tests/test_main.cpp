// Runs the tests. Exit code 0: all passed; 4: those that ran passed and some were skipped; anything else: as the test
// framework has it.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "tests/skip.hpp"

int main(int argc, char** argv) {
  const int result = Catch::Session().run(argc, argv);
  return result == 0 && tidepool::tests::skipped_any ? tidepool::tests::kSkippedExitCode : result;
}
