#include "simulator/registry.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "simulator/run_spec.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/refusal.hpp"
#include "traces/base/error.hpp"

namespace tidepool::registry_test {

using tidepool::tests::refusal;

namespace {

/// Checks that names differ and are sorted, and that each registration has all texts for users.
template <class Info>
void check_listed(const std::vector<const Info*>& infos) {
  for (std::size_t i = 0; i < infos.size(); ++i) {
    INFO(infos[i]->name);
    if (i > 0) CHECK(infos[i - 1]->name < infos[i]->name);
    CHECK_FALSE(infos[i]->summary.empty());
    CHECK_FALSE(infos[i]->paper.empty());
    for (const OptionInfo& option : infos[i]->options) CHECK_FALSE(option.meaning.empty());
    const Options defaults{infos[i]->name, infos[i]->options, {}};  // throws if an option refuses its own default
    CHECK(infos[i]->make(defaults) != nullptr);
  }
}

}  // namespace

TEST_CASE("every pool and policy has a name of its own, a summary, a source and valid defaults") {
  check_listed(all_pools());
  check_listed(all_policies());
}

TEST_CASE("policies are found by name") {
  CHECK(find_policy("none").kind == PolicyKind::kNone);
  std::string known;
  for (const PolicyInfo* info : all_policies()) known += (known.empty() ? "" : ", ") + info->name;
  CHECK(refusal([] { find_policy("nome"); }) == "no policy named 'nome', did you mean 'none'?; known: " + known);
  CHECK(refusal([] { find_policy("no-such-thing-at-all"); }) ==
        "no policy named 'no-such-thing-at-all'; known: " + known);
}

TEST_CASE("pools are found by name") {
  std::string known;
  for (const PoolInfo* info : all_pools()) known += (known.empty() ? "" : ", ") + info->name;
  CHECK(refusal([] { find_pool("no-such-thing-at-all"); }) == "no pool named 'no-such-thing-at-all'; known: " + known);
}

TEST_CASE("a registration that was built for another version is refused") {
  const std::size_t before = all_policies().size();
  RegisterPolicy{PolicyInfo{.name = "from-elsewhere", .summary = {}, .paper = {}, .options = {}, .make = {}}, "0.0.1"};
  CHECK(all_policies().size() == before);
}

namespace {

/// Counts its copies.
struct PlanOfElsewhere {
  int* copies;
  explicit PlanOfElsewhere(int& count) : copies{&count} {}
  PlanOfElsewhere(const PlanOfElsewhere& other) : copies{other.copies} { ++*copies; }
  PlanOfElsewhere& operator=(const PlanOfElsewhere&) = delete;
  std::unique_ptr<Planner> operator()(const Options&) const { return nullptr; }
};

}  // namespace

TEST_CASE("the planner of a registration that was built for another version is not read") {
  const std::size_t before = all_pools().size();
  int copies = 0;
  PoolInfo info{.name = "from-elsewhere", .summary = {}, .paper = {}, .options = {}, .make = {}};
  info.plan = PlanOfElsewhere{copies};
  copies = 0;
  RegisterPool{std::move(info), "0.0.1"};
  CHECK(copies == 0);
  CHECK(all_pools().size() == before);
}

TEST_CASE("a library that was refused as a plug-in is refused again") {
  Dl_info library;
  REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &library) != 0);
  const std::string path = library.dli_fname;
  for (int i = 0; i < 2; ++i)
    CHECK(refusal([&] { load_plugin(path); }) ==
          path + ": registers no pool and no policy; expected a namespace-scope RegisterPool or RegisterPolicy");
}

TEST_CASE("a file that is not a shared library is refused as a plug-in") {
  CHECK(refusal([] { load_plugin("/no/such/file.so"); }) ==
        "/no/such/file.so: no such file; expected a shared library with pools or policies");
  const std::string text = paths::source_folder() + "/LICENSE";
  CHECK_THAT(refusal([&] { load_plugin(text); }), ContainsSubstring(text + ": cannot be loaded: "));
}

TEST_CASE("assumptions are found by the name of the simulator that made them") {
  const Assumptions simrd = Assumptions::find("simrd");
  CHECK(simrd.name == "simrd");
  CHECK((simrd.copy_on_write && simrd.replay_views && simrd.keep_recomputed && simrd.pin_sources));
  CHECK(simrd.clock_start == 1_ns);
  CHECK_FALSE(Assumptions::find("").copy_on_write);
  CHECK(refusal([] { Assumptions::find("simdr"); }) ==
        "no assumptions named 'simdr', did you mean 'simrd'?; known: checkmate, moccasin, simrd");
}

}  // namespace tidepool::registry_test
