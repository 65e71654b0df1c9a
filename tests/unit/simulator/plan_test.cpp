#include "simulator/plan.hpp"

#include "tests/catch.hpp"

namespace tidepool::plan_test {

TEST_CASE("an action's text has the verb, the subject and the op that follows the action") {
  const OpId op{12};
  CHECK(to_text(Action{Verb::kDrop, op, 3, {}, {}}) == "drop version 3 before op 12");
  CHECK(to_text(Action{Verb::kAlloc, op, 7, {}, {}}) == "alloc version 7 before op 12");
  CHECK(to_text(Action{Verb::kScratch, op, 7, {}, {}}) == "scratch version 7 before op 12");
  CHECK(to_text(Action{Verb::kFree, op, 7, {}, {}}) == "free version 7 before op 12");
  CHECK(to_text(Action{Verb::kCopy, op, 7, {}, {}}) == "copy version 7 before op 12");
  CHECK(to_text(Action{Verb::kSwapOut, op, 7, {}, {}}) == "swap out version 7 before op 12");
  CHECK(to_text(Action{Verb::kSwapIn, op, 7, {}, {}}) == "swap in version 7 before op 12");
  CHECK(to_text(Action{Verb::kAwait, op, 7, {}, {}}) == "await version 7 before op 12");
  CHECK(to_text(Action{Verb::kNext, op, 2, {}, {}}) == "begin iteration 2 before op 12");
  CHECK(to_text(Action{Verb::kRun, op, 4, {}, {}}) == "run op 4 before op 12");
  CHECK(to_text(Action{Verb::kReserve, op, 0, Bytes{1024}, Bytes{512}}) == "reserve [1024, +512) before op 12");
  CHECK(to_text(Action{Verb::kRelease, {}, 0, Bytes{1024}, Bytes{512}}) == "release [1024, +512) after the last op");
}

}  // namespace tidepool::plan_test
