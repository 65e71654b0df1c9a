// Ranks of a dry run: messages between them, reductions, and pending results.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <set>
#include <thread>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tracer/dry/ranks/communicator.hpp"
#include "tracer/dry/ranks/mailbox.hpp"
#include "tracer/dry/ranks/pending_results.hpp"
#include "tracer/dry/ranks/reduction.hpp"

namespace tidepool::dry::ranks_test {
namespace {

using namespace std::chrono_literals;
using Contents = std::vector<std::vector<std::byte>>;

template <class T>
std::vector<std::byte> bytes(const std::vector<T>& values) {
  std::vector<std::byte> content(values.size() * sizeof(T));
  std::memcpy(content.data(), values.data(), content.size());
  return content;
}

template <class T>
std::vector<T> values(const std::vector<std::byte>& content) {
  std::vector<T> all(content.size() / sizeof(T));
  std::memcpy(all.data(), content.data(), content.size());
  return all;
}

TEST_CASE("messages of another rank can be taken in any order, by their receivers") {
  const ScratchFolder folder;
  Mailbox first{folder.file("ranks"), 0}, second{folder.file("ranks"), 1};
  first.post({1, kEverybody, 0}, bytes<int>({1}));
  first.post({1, 1, 0}, bytes<int>({2, 3}));
  first.post({1, 0, 0}, bytes<int>({4}));
  CHECK(values<int>(second.take(0, {1, 1, 0})) == std::vector{2, 3});
  CHECK(values<int>(second.take(0, {1, kEverybody, 0})) == std::vector{1});
  CHECK(values<int>(first.take(0, {1, 0, 0})) == std::vector{4});
}

TEST_CASE("a rank that waits for a message gets it when the message arrives") {
  const ScratchFolder folder;
  Mailbox waiting{folder.file("ranks"), 0};
  std::thread other{[&] {
    std::this_thread::sleep_for(20ms);
    Mailbox late{folder.file("ranks"), 1};
    late.post({7, 0, 3}, bytes<int>({5}));
  }};
  CHECK(values<int>(waiting.take(1, {7, 0, 3})) == std::vector{5});
  other.join();
}

TEST_CASE("a rank does not wait for a process that has ended, and waits a limited time for a live one") {
  const ScratchFolder folder;
  Mailbox waiting{folder.file("ranks"), 0, 50ms};
  const pid_t child = fork();
  if (child == 0) {
    Mailbox gone{folder.file("ranks"), 1};
    gone.post({1, 0, 0}, {});
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(waiting.take(1, {1, 0, 0}).empty());  // the message that it sent before it ended is there
  CHECK_THROWS_WITH(waiting.take(1, {1, 0, 1}), fmt::format("rank 1 (process {}) has ended", child));
  const Mailbox silent{folder.file("ranks"), 2};
  CHECK_THROWS_WITH(waiting.take(2, {1, 0, 0}), "rank 2 did not send the awaited message in 0.05 s");
  CHECK_THROWS_WITH(waiting.take(3, {1, 0, 0}), "rank 3 did not send the awaited message in 0.05 s");
}

TEST_CASE("reductions of small messages are those of NCCL") {
  const Contents whole{bytes<std::int64_t>({1, -5}), bytes<std::int64_t>({3, 2})};
  const auto of = [&](Reduction reduction) { return values<std::int64_t>(reduced(whole, Element::kInt64, reduction)); };
  CHECK(of(Reduction::kSum) == std::vector<std::int64_t>{4, -3});
  CHECK(of(Reduction::kProduct) == std::vector<std::int64_t>{3, -10});
  CHECK(of(Reduction::kMax) == std::vector<std::int64_t>{3, 2});
  CHECK(of(Reduction::kMin) == std::vector<std::int64_t>{1, -5});
  const Contents floats{bytes<float>({1.5F}), bytes<float>({2.5F})};
  CHECK(values<float>(reduced(floats, Element::kFloat32, Reduction::kAverage)) == std::vector{2.0F});
  CHECK(values<float>(reduced(floats, Element::kFloat32, Reduction::kSum, 0.5)) == std::vector{2.0F});
}

TEST_CASE("floats of 16 bits are added as numbers, not as bits") {
  // As half and bfloat16, 1.5 is 0x3e00 and 0x3fc0, 2.25 is 0x4080 and 0x4010, 3.75 is 0x4380 and 0x4070.
  const Contents halves{bytes<std::uint16_t>({0x3e00, 0x7bff, 0x0001}), bytes<std::uint16_t>({0x4080, 0x7bff, 0x0001})};
  CHECK(values<std::uint16_t>(reduced(halves, Element::kFloat16, Reduction::kSum)) ==
        std::vector<std::uint16_t>{0x4380, 0x7c00, 0x0002});  // 2 * 65504 is infinite; twice the least unit is 2 units
  const Contents brain{bytes<std::uint16_t>({0x3fc0}), bytes<std::uint16_t>({0x4010})};
  CHECK(values<std::uint16_t>(reduced(brain, Element::kBfloat16, Reduction::kSum)) ==
        std::vector<std::uint16_t>{0x4070});
}

TEST_CASE("a communicator splits by colour, in the order of keys") {
  const ScratchFolder folder;
  const UniqueId id = new_unique_id();
  CHECK(id.number() != new_unique_id().number());
  struct Made {
    std::optional<Communicator::Part> part;
    std::vector<int> of_rank_2;
  } made[3];
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      Communicator all{folder.file("ranks"), id.number(), rank, 3};
      made[rank].part = all.split(rank == 1 ? -1 : 5, -static_cast<int>(rank));  // ranks 0 and 2; 2 comes first
      all.contribute(0, bytes<int>({static_cast<int>(rank)}));
      made[rank].of_rank_2 = values<int>(all.contributions(0, {0, 1, 2})[2]);
    });
  for (std::thread& each : ranks) each.join();
  for (const Made& one : made) CHECK(one.of_rank_2 == std::vector{2});
  REQUIRE((made[0].part && !made[1].part && made[2].part));
  CHECK(made[0].part->rank == 1);
  CHECK(made[2].part->rank == 0);
  CHECK(made[0].part->ranks == 2);
  CHECK(made[0].part->id == made[2].part->id);
}

TEST_CASE("ranks that made a part without another rank can still split with it, and make a part that holds it") {
  const ScratchFolder folder;
  const std::uint64_t id = new_unique_id().number();
  std::uint64_t pair[3] = {}, later_pair[3] = {}, split[3] = {}, all[3] = {};
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      Communicator whole{folder.file("ranks"), id, rank, 3};
      if (rank != 2) pair[rank] = whole.without(std::array{2}).id;
      split[rank] = whole.split(0, 0)->id;
      all[rank] = whole.without({}).id;
      if (rank != 2) later_pair[rank] = whole.without(std::array{2}).id;
    });
  for (std::thread& each : ranks) each.join();
  CHECK(pair[0] == pair[1]);
  for (int rank = 0; rank < 2; ++rank) CHECK(later_pair[rank] != pair[rank]);
  CHECK((split[0] == split[1] && split[0] == split[2]));
  CHECK((all[0] == all[1] && all[0] == all[2]));
  CHECK(std::set{pair[0], split[0], all[0]}.size() == 3);
}

TEST_CASE("a result is fetched once, when its bytes are read or its stream is waited for") {
  PendingResults results;
  std::vector<int> fetched;
  const auto add = [&](std::uint64_t address, int name) {
    return results.add(address, 10, [&, name] { fetched.push_back(name); });
  };
  const std::uint64_t first = add(100, 1), second = add(200, 2);
  add(300, 3);
  add(400, 4);
  results.fetch(110, 90);  // between the first two results
  CHECK(fetched.empty());
  results.fetch(209, 1);
  CHECK(fetched == std::vector{2});
  ResultNumbers stream, event;
  results.depend(stream, first);
  results.depend(stream, second);
  CHECK(stream == ResultNumbers{first});  // the second result has been fetched already
  results.depend(event, stream);
  results.drop(395, 10);
  results.fetch(event);
  results.fetch(event);
  CHECK(fetched == std::vector{2, 1});
  results.fetch_all();
  CHECK(fetched == std::vector{2, 1, 3});
}

TEST_CASE("a result is fetched before numbers that it is computed from are overwritten or forgotten") {
  PendingResults results;
  std::vector<int> fetched;
  const auto number = [&](std::uint64_t address, int name, std::vector<ByteRange> reads) {
    results.add(
        address, 8,
        [&, name, reads] {
          for (const ByteRange& range : reads) results.fetch(range.address, range.bytes);
          fetched.push_back(name);
        },
        reads);
  };
  number(100, 1, {});
  number(200, 2, {{100, 8}});
  number(300, 3, {{400, 8}, {200, 8}});
  number(500, 4, {{100, 8}});
  results.fetch_readers(108, 92);  // between the first two numbers
  CHECK(fetched.empty());
  results.fetch_readers(207, 1);  // the third number reads the second one, which reads the first one
  CHECK(fetched == std::vector{1, 2, 3});
  results.fetch_readers(100, 8);
  CHECK(fetched == std::vector{1, 2, 3, 4});
  number(100, 5, {});
  number(200, 6, {{100, 8}});
  results.drop(100, 8);
  CHECK(fetched == std::vector{1, 2, 3, 4, 5, 6});
  number(100, 7, {});
  results.drop(100, 8);  // nothing reads it
  results.fetch_all();
  CHECK(fetched == std::vector{1, 2, 3, 4, 5, 6});
}

}  // namespace
}  // namespace tidepool::dry::ranks_test
