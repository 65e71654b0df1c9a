// The kernels' code, which must change words exactly as the host does.
#include "validator/cuda/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "tests/fake_cuda.hpp"
#include "validator/execution/fingerprint.hpp"
#include "validator/execution/words.hpp"

namespace tidepool::kernels_test {

using cuda::Found;
using cuda::Span;
using cuda::Stamp;
using cuda::Work;
using Words = std::vector<std::uint64_t>;

namespace {

/// Two places on the device, and the data that the kernels get about them. Kernels read the first, write the second.
class Bench {
 public:
  Bench(std::size_t count, std::size_t covered)
      : count_{count},
        covered_{covered},
        places_{allocate(gpu(), Bytes{static_cast<std::int64_t>(2 * covered * 8)}, "words")},
        spans_{allocate(gpu(), Bytes{2 * sizeof(Span)}, "spans")},
        work_{allocate(gpu(), Bytes{sizeof(Work)}, "work")},
        found_{allocate(gpu(), Bytes{2 * sizeof(Found)}, "found")},
        stamp_{allocate(gpu(), Bytes{sizeof(Stamp)}, "stamps")},
        stream_{make_stream(gpu())} {}

  void put(std::size_t place, const Words& words) { send(places_.get() + place * covered_ * 8, words); }
  Words words(std::size_t place) const {
    Words read(covered_);
    driver()(driver().copy_out_now, static_cast<void*>(read.data()), places_.get() + place * covered_ * 8,
             covered_ * 8);
    return read;
  }
  void describe(const Work& work, std::uint64_t read_number, std::uint64_t write_number) {
    send(work_.get(), std::vector{work});
    send(spans_.get(), std::vector{Span{places_.get(), count_, covered_, read_number},
                                   Span{places_.get() + covered_ * 8, count_, covered_, write_number}});
    send(found_.get(), std::vector(2, Found{0, ~std::uint64_t{0}, 0, 0}));
  }
  /// Runs the read of describe(), by several blocks.
  void read() {
    run("tidepool_read", 3, work_.get(), spans_.get(), found_.get(), stamp_.get(), 0U);
    run("tidepool_note", 1, work_.get(), spans_.get(), found_.get(), 0U);
  }
  void write() { run("tidepool_write", 3, work_.get(), spans_.get(), found_.get(), stamp_.get(), 0U); }
  void on_place(const char* kernel, unsigned place) { run(kernel, 2, spans_.get(), place); }
  Found found() const {
    Found read{};
    driver()(driver().copy_out_now, static_cast<void*>(&read), found_.get(), sizeof(read));
    return read;
  }

 private:
  const cuda::Gpu& gpu() const { return device_.gpu(); }
  const cuda::Driver& driver() const { return gpu().driver(); }
  template <class T>
  void send(cuda::Address to, const std::vector<T>& values) {
    driver()(driver().copy_in_now, to, static_cast<const void*>(values.data()), values.size() * sizeof(T));
  }
  template <class... Args>
  void run(const char* kernel, unsigned blocks, Args... args) {
    launch(gpu(), gpu().kernel(kernel), blocks, 64, stream_.get(), args...);
    while (driver().stream_query.status(stream_.get()) == cuda::kErrorNotReady) continue;
  }

  const std::size_t count_, covered_;
  const tests::FakeDriver device_{"seed=1"};
  const cuda::Owned<cuda::Address> places_, spans_, work_, found_, stamp_;
  const cuda::Owned<cuda::Stream> stream_;
};

Content content_of(Words& words, std::size_t count) { return {words.data(), count, words.size()}; }

}  // namespace

TEST_CASE("the kernels' code writes, copies and clears as the host does") {
  std::mt19937_64 random{5};
  for (const std::size_t count : {1U, 31U, 64U, 200U}) {
    for (const std::size_t covered : {count, count + 1, 3 * count, 3 * count + 7}) {
      INFO(fmt::format("{} words over {}", count, covered));
      Bench bench{count, covered};
      Words expected(covered);
      bench.describe({.first = 0, .reads = 1, .writes = 1, .is_fill = 1, .seed = 0, .duration = 0}, 0, 77);
      bench.write();
      fill_words(content_of(expected, count), 77);
      CHECK(bench.words(1) == expected);
      expected[random() % covered] ^= 4;  // may be one of the repeated words
      bench.put(0, expected);
      Words copied(covered);
      copy_words(content_of(copied, count), content_of(expected, count));
      bench.on_place("tidepool_fold", 0);
      Words moved = bench.words(0);
      std::fill(moved.begin() + static_cast<std::ptrdiff_t>(count), moved.end(), 0);  // a copy moves `count` words
      bench.put(1, moved);
      bench.on_place("tidepool_repeat", 1);
      CHECK(bench.words(1) == copied);
      bench.on_place("tidepool_clear", 1);
      CHECK(bench.words(1) == Words(covered, kCleared));
    }
  }
}

TEST_CASE("the kernels' code finds wrong words as the host does, and its output depends on them") {
  std::mt19937_64 random{6};
  for (const std::size_t wrong : {0U, 1U, 2U, 40U}) {
    const std::size_t count = 150, covered = 470;
    INFO(wrong);
    Bench bench{count, covered};
    Words words(covered);
    fill_words(content_of(words, count), 9);
    const Words right = words;
    for (std::size_t i = 0; i < wrong; ++i) words[random() % covered] ^= std::uint64_t{1} << (random() % 64);
    Found expected{0, ~std::uint64_t{0}, 0, 0};
    for (std::size_t at = covered; at-- > 0;) {
      expected.sum += part_of_wrong(words[at], at);
      if (words[at] != right[at]) ++expected.wrong, expected.first = at, expected.value = words[at];
    }
    bench.put(0, words);
    bench.describe({.first = 0, .reads = 1, .writes = 1, .is_fill = 0, .seed = 123, .duration = 0}, 9, 4);
    bench.read();
    const Found found = bench.found();
    CHECK(found.wrong == expected.wrong);
    CHECK(found.first == expected.first);
    CHECK(found.value == expected.value);
    CHECK(found.sum == expected.sum);
    bench.write();
    const std::uint64_t inputs[] = {wrong == 0 ? 9 : expected.sum};
    Words written(covered);
    fill_words(content_of(written, count), output_content(op_content(123, inputs), 4));
    CHECK(bench.words(1) == written);
  }
}

}  // namespace tidepool::kernels_test
