#include <schemas/pprof.pb.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/program.hpp"
#include "tests/skip.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::pprof_test {

using namespace tidepool::literals;
using tests::complaint;

namespace {

/// Texts 0 to 10 are "", "space", "bytes", "allocations", "count", "kind", "buffer", "executable", "device", "gpu:1",
/// "/lib/python3.11/site-packages/jax/api.py".
pprof::Profile profile() {
  pprof::Profile profile;
  for (const char* text : {"", "space", "bytes", "allocations", "count", "kind", "buffer", "executable", "device",
                           "gpu:1", "/usr/lib/python3.11/site-packages/jax/api.py", "jit", "/home/ada/net.py", "step"})
    profile.add_texts(text);
  for (const auto& [type, unit] : {std::pair{3, 4}, std::pair{1, 2}}) {
    pprof::ValueType& value = *profile.add_sample_type();
    value.set_type_text(type);
    value.set_unit_text(unit);
  }
  for (const auto& [id, name, file] : {std::tuple{1, 11, 10}, std::tuple{2, 13, 12}}) {
    pprof::Function& function = *profile.add_function();
    function.set_id(static_cast<std::uint64_t>(id));
    function.set_name_text(name);
    function.set_file_text(file);
    pprof::Location& location = *profile.add_location();
    location.set_id(static_cast<std::uint64_t>(id) * 10);
    pprof::Line& line = *location.add_line();
    line.set_function_id(static_cast<std::uint64_t>(id));
    line.set_line(88);
  }
  return profile;
}

void add_sample(pprof::Profile& profile, std::int64_t count, std::int64_t bytes, std::int64_t kind, bool device) {
  pprof::Sample& sample = *profile.add_sample();
  for (const std::uint64_t location : {10U, 20U}) sample.add_location_id(location);
  sample.add_value(count);
  sample.add_value(bytes);
  for (const auto& [key, value] : {std::pair<std::int64_t, std::int64_t>{5, kind}, {8, 9}}) {
    if (key == 8 && !device) continue;
    pprof::Label& label = *sample.add_label();
    label.set_key_text(key);
    label.set_value_text(value);
  }
}

std::string refusal(const pprof::Profile& profile) { return complaint(read_pprof, profile.SerializeAsString()); }

}  // namespace

TEST_CASE("each sample of a heap profile is a buffer, with the line of the user's code") {
  pprof::Profile file = profile();
  add_sample(file, 6, 6000, 6, true);
  add_sample(file, 1, 40, 7, false);
  const Trace trace = load_trace(Input{"memory.prof", file.SerializeAsString()});
  REQUIRE(trace.buffers().size() == 2);
  const Buffer& six = trace.buffer(BufferId{0});
  CHECK(six.size == 6000_B);
  CHECK(trace.text(six.name) == "step x6");
  CHECK(trace.text(six.line) == "/home/ada/net.py:88");
  CHECK(six.device == 1);
  CHECK(six.born_before);
  CHECK(six.outlives);
  CHECK(trace.text(trace.buffer(BufferId{1}).name) == "executable");
  CHECK(trace.buffer(BufferId{1}).device == 0);
}

TEST_CASE("protoc finds as many samples in a heap profile as the import") {
  if (std::system("protoc --version >/dev/null 2>&1") != 0) return tests::skip("no protoc");
  pprof::Profile file = profile();
  for (int i = 1; i <= 37; ++i) add_sample(file, i, i * 100, 6, i % 2 == 0);
  const ScratchFolder folder;
  const std::string bytes = file.SerializeAsString();
  std::ofstream{folder.file("memory.prof"), std::ios::binary} << bytes;
  const std::string decode =
      "protoc --decode_raw <" + folder.file("memory.prof") + " | grep -c '^2 {' >" + folder.file("count");
  REQUIRE(std::system(decode.c_str()) == 0);
  CHECK(read_pprof(Input{"memory.prof", bytes}).buffers().size() == std::stoul(content_of(folder.file("count"))));
}

TEST_CASE("messages about heap profiles") {
  pprof::Profile file = profile();
  add_sample(file, 1, -5, 6, true);
  CHECK(refusal(file) == "t.log: a sample has -5 B; expected at least 0");
  file = profile();
  add_sample(file, 1, 5, 99, true);
  CHECK(refusal(file) == "t.log: names text 99 of 14; expected one that it has");
  file = profile();
  file.add_sample()->add_value(3);
  CHECK(refusal(file) == "t.log: a sample has 1 values; expected one for each type");
  file = profile();
  add_sample(file, 1, 5, 6, true);
  file.mutable_location()->RemoveLast();
  CHECK(refusal(file) == "t.log: a sample is at location 20, which is not in the file");
  file.mutable_function()->Clear();
  CHECK(refusal(file) == "t.log: location 10 is in function 1, which is not in the file");
  file = profile();
  file.mutable_sample_type()->RemoveLast();
  CHECK(refusal(file) == "t.log: has no samples in bytes of type space or inuse_space; expected a profile of the heap");
  CHECK(complaint(read_pprof, "\x0a\x7f") == "t.log: is damaged; expected a profile of pprof");
}

}  // namespace tidepool::pprof_test
