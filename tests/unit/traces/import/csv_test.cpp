#include "tests/catch.hpp"
#include "tests/importing.hpp"

namespace tidepool::csv_test {

using namespace tidepool::literals;
using tests::program;

namespace {

Trace read(std::string_view text) { return read_interval_csv(Input{"t.log", text}); }

}  // namespace

TEST_CASE("intervals become lifetimes in the order of time, and at equal times, ends come before starts") {
  const Trace trace = read("id,lower,upper,size\nc,5,9,4\na,0,5,3\nb,-2,7,2\n");
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "alloc 1", "free 1", "alloc 2", "free 0", "free 2"});
  CHECK(trace.text(trace.buffer(BufferId{0}).name) == "b");
  CHECK(trace.text(trace.buffer(BufferId{2}).name) == "c");
  CHECK(trace.ideal_peak() == 6_B);  // b and c; a has ended when c begins
}

TEST_CASE("the columns of intervals may come in any order, with blanks, a byte order mark and Windows line ends") {
  const Trace trace = read("\xef\xbb\xbfsize, id ,upper,lower\r\n8,x,3,1\r\n\r\n");
  REQUIRE(trace.buffers().size() == 1);
  CHECK(trace.buffer(BufferId{0}).size == 8_B);
  CHECK(trace.text(trace.buffer(BufferId{0}).name) == "x");
}

}  // namespace tidepool::csv_test
