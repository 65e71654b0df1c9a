#include "policies/planning/eviction/class_levels.hpp"

#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::class_levels_test {

namespace {

using Fallen = std::vector<std::pair<std::uint32_t, std::int64_t>>;  // version, ns below its level

Fallen fall(ClassLevels& levels, std::uint32_t of_class, Nanos cost) {
  Fallen fallen;
  levels.fell(of_class, cost, [&](VersionId v, Nanos by) { fallen.emplace_back(v.value(), by.count()); });
  return fallen;
}

std::vector<std::uint32_t> unite(ClassLevels& levels, std::uint32_t from, std::uint32_t into) {
  std::vector<std::uint32_t> called;
  levels.unite(from, into, [&](VersionId v) { called.push_back(v.value()); });
  return called;
}

ClassLevels two_classes(std::size_t versions) {
  ClassLevels levels;
  levels.start(versions);
  levels.add_class();
  levels.add_class();
  return levels;
}

}  // namespace

TEST_CASE("a class that falls calls each version that counted on a higher level, the highest first, and only once") {
  ClassLevels levels = two_classes(3);
  levels.note(VersionId{0}, 0, 50_ns);
  levels.note(VersionId{1}, 0, 80_ns);
  levels.note(VersionId{2}, 0, 30_ns);
  CHECK(fall(levels, 0, 80_ns).empty());
  CHECK(fall(levels, 0, 40_ns) == Fallen{{1, 40}, {0, 10}});
  CHECK(fall(levels, 0, 35_ns).empty());
  CHECK(fall(levels, 0, 29_ns) == Fallen{{2, 1}});
}

TEST_CASE("a version that has forgotten its levels is not called for them") {
  ClassLevels levels = two_classes(1);
  levels.note(VersionId{0}, 0, 50_ns);
  levels.forget(VersionId{0});
  levels.note(VersionId{0}, 0, 20_ns);
  CHECK(fall(levels, 0, 30_ns).empty());
  CHECK(fall(levels, 0, 10_ns) == Fallen{{0, 10}});
}

TEST_CASE("when two classes become one, the versions of the class with fewer notes are called") {
  ClassLevels levels = two_classes(3);
  levels.note(VersionId{0}, 0, 50_ns);
  levels.note(VersionId{1}, 0, 50_ns);
  levels.note(VersionId{1}, 1, 50_ns);  // version 1 counts on both classes
  CHECK(unite(levels, 0, 1) == std::vector<std::uint32_t>{1});
  CHECK(fall(levels, 1, 49_ns) == Fallen{{0, 1}});
}

TEST_CASE("levels that no longer count are removed as more are noted") {
  ClassLevels levels = two_classes(2);
  levels.note(VersionId{1}, 0, 5_ns);
  for (int i = 0; i < 1'000; ++i) {
    levels.forget(VersionId{0});
    levels.note(VersionId{0}, 0, Nanos{i});
  }
  CHECK(levels.notes(0) < 20);
  CHECK(fall(levels, 0, 6_ns) == Fallen{{0, 993}});
  CHECK(fall(levels, 0, 4_ns) == Fallen{{1, 1}});
}

}  // namespace tidepool::class_levels_test
