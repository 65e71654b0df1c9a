// The messages of the reader of RMM logs, word for word.
#include <string>

#include "tests/catch.hpp"
#include "tests/importing.hpp"

namespace tidepool::rmm_messages_test {

using tests::complaint;

TEST_CASE("messages about RMM logs") {
  const auto said = [](const std::string& text) { return complaint(read_rmm, text); };
  const std::string header = "Thread,Time,Action,Pointer,Size,Stream\n";
  CHECK(said("") == "t.log: no row; expected rows of Thread,Time,Action,Pointer,Size,Stream");
  CHECK(said(header) == "t.log: no row; expected rows of Thread,Time,Action,Pointer,Size,Stream");
  CHECK(said(header + "1,2,3\n") == "t.log:2: '1,2,3'; expected Thread,Time,Action,Pointer,Size,Stream");
  CHECK(said("1,10:00:00.000000,free,0x1,8,0,7\n") ==
        "t.log:1: '1,10:00:00.000000,free,0x1,8,0,7'; expected Thread,Time,Action,Pointer,Size,Stream");
  const std::string time = "1,10:00:00.000000,";
  const auto timed = [&](const std::string& text) { return said("1," + text + ",free,0x1,8,0\n"); };
  for (const char* wrong :
       {"soon", "10:00:00", "10:00:00.00001", "24:00:00.000000", "10:60:00.000000", "10-00:00.000000",
        "1634567890:123456", "9000000001.000000", "-1634567890.123456", ".123456"})
    CHECK(timed(wrong) ==
          "t.log:1: the time is '" + std::string{wrong} + "'; expected one as in 15:47:02.841961 or 1634567890.123456");
  CHECK(said(time + "alloc,0x1,8,0\n") ==
        "t.log:1: unknown action 'alloc'; expected allocate, free or allocate failure");
  CHECK(said(time + "allocate,here,8,0\n") ==
        "t.log:1: the pointer is 'here'; expected one as in 0x7f8a40000000 or (nil)");
  CHECK(said(time + "allocate,-5,8,0\n") == "t.log:1: the pointer is '-5'; expected one as in 0x7f8a40000000 or (nil)");
  CHECK(said(time + "allocate,0x1,8MB,0\n") == "t.log:1: the size is '8MB'; expected a whole number, at least 0");
  CHECK(said(time + "allocate,0x1,-8,0\n") == "t.log:1: the size is '-8'; expected a whole number, at least 0");
  CHECK(said(time + "allocate,(nil),8,0\n") == "t.log:1: allocates 8 bytes at the null pointer");
  CHECK(said(time + "free,(nil),8,0\n").empty());
  CHECK(said(time + "allocate,0x1,2305843009213693952,0\n" + time + "allocate,0x2,1,0\n") ==
        "t.log:2: the sizes add up to more than 2305843009213693952");
  CHECK(said(time + "allocate,0x1,2305843009213693952,0\n" + time + "allocate,0x2,1,0") ==  // a whole row, no line end
        "t.log:2: the sizes add up to more than 2305843009213693952");
  CHECK(said(time + "free,0x1,8,0\n1,1634567890.123456,free,0x2,8,0\n") ==
        "t.log:2: a time since 1970; the rows before have times of day");
  CHECK(said(time + "free,0x1,8,0\nfree\n") == "t.log:2: 'free'; expected Thread,Time,Action,Pointer,Size,Stream");
  std::string streams;
  for (int i = 0; i < 4096; ++i) streams += time + "free,0x1,8," + std::to_string(i) + "\n";
  CHECK(said(streams).empty());
  CHECK(said(streams + time + "free,0x1,8,new\n") == "t.log:4097: more than 4096 streams");
  CHECK(said("free") == "t.log:1: 'free'; expected Thread,Time,Action,Pointer,Size,Stream");  // nothing before it
}

}  // namespace tidepool::rmm_messages_test
