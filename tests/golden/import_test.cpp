// Real logs of other projects, compared with facts that their authors or independent tools state.
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::import_test {

using tests::shared_data;

namespace {

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> found;
  std::istringstream in{line};
  for (std::string field; std::getline(in, field, ',');) found.push_back(field);
  return found;
}

/// The peak if every in-place write were a copy and the old version stayed until it is forgotten.
Bytes copy_on_write_peak(const Trace& trace) {
  std::vector<int> roots(trace.buffers().size());
  for (const Version& version : trace.versions()) roots[version.buffer.index()] += version.kind != VersionKind::kView;
  const auto size = [&](VersionId id) { return trace.buffer(trace.version(id).buffer).size; };
  Bytes now, peak;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kAlloc) now += trace.buffer(BufferId{event.id}).size;
    if (event.kind == EventKind::kForget) now -= size(VersionId{event.id});
    if (event.kind == EventKind::kFree && roots[event.id] == 1) now -= trace.buffer(BufferId{event.id}).size;
    if (event.kind == EventKind::kRun)
      for (const Use& use : trace.uses(OpId{event.id}))
        if (use.access == Access::kReadWrite) now += size(use.out);
    peak = std::max(peak, now);
  }
  return peak;
}

}  // namespace

TEST_CASE("DTR logs have the compute time, constants and peak that their authors' simulator reports") {
  const auto table = shared_data("dtr/simrd_results.csv");
  if (!table) return;
  const std::map<std::string, std::string> files{
      {"resnet", "resnet32-56-9000000000.0-2020-10-1-13-3-30-default.log.gz"},
      {"unet", "unet-6-8000000000.0-2020-10-1-10-57-18-default.log.gz"},
      {"inception", "inceptionv4-64-10000000000.0-2020-10-1-10-55-0-default.log.gz"},
      {"treelstm", "treelstm-6-8000000000.0-2020-10-1-12-54-1-default.log.gz"}};
  std::map<std::string, std::vector<std::string>> expected;
  std::ifstream in{*table};
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = fields(line);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  while (std::getline(in, line)) expected[fields(line)[0]] = fields(line);
  for (const auto& [model, file] : files) {
    INFO(model);
    const Trace trace = load_trace(*shared_data("dtr/" + file));
    const std::vector<std::string>& row = expected.at(model);
    Nanos time;
    Bytes constants;
    for (const Op& op : trace.ops()) time += op.duration;
    for (const Buffer& buffer : trace.buffers())
      if (buffer.kind == BufferKind::kParameter) constants += buffer.size;
    CHECK(std::to_string(trace.ops().size()) == row[column("n_ops")]);
    CHECK(std::to_string(time.count()) == row[column("baseline_compute_ns")]);
    CHECK(std::to_string(constants.count()) == row[column("baseline_const")]);
    CHECK(std::to_string(copy_on_write_peak(trace).count()) == row[column("baseline_memory")]);
  }
}

TEST_CASE("tables of lifetimes and the logs that they were made from have the same load") {
  const auto known = shared_data("static_alloc/best_known.csv");
  if (!known) return;
  std::map<std::string, std::pair<std::string, std::string>> expected;  // buffers, load
  std::ifstream in{*known};
  for (std::string line; std::getline(in, line);) expected[fields(line)[0]] = {fields(line)[1], fields(line)[2]};
  const auto check = [&](const std::string& file, const std::string& name) {
    INFO(file);
    const Trace trace = load_trace(*shared_data(file));
    CHECK(std::to_string(trace.buffers().size()) == expected.at(name).first);
    CHECK(std::to_string(trace.ideal_peak().count()) == expected.at(name).second);
  };
  for (const char letter : std::string{"ABCDEFGHIJK"})
    check(std::string{"static_alloc/minimalloc_"} + letter + ".csv", std::string{"minimalloc/"} + letter);
  for (const std::string name : {"G_1", "resnet50", "pangu_2.6B"})
    check("static_alloc/" + name + ".csv", "idealloc/" + name);
  for (const std::string name : {"bcrafton", "eor_nn", "ftcourse", "nothanmin_fwd", "wedsonlin_medium_128_train"})
    check("static_alloc/pytorch_" + name + ".dev0.csv", "pytorch/" + name + ".dev0");
  for (const std::string name : {"alex", "vgg"}) {
    check("static_alloc/singa_" + name + "_20itr.csv", "singa/" + name + "_20itr");
    check("singa/memInfo_" + name + "_20itr_100size_cudaMalloc.text.gz", "singa/" + name + "_20itr");
  }
}

TEST_CASE("SINGA logs have the iterations that their authors found") {
  struct Expected {
    std::string file;
    std::size_t iterations;
    std::uint32_t length;
  };
  for (const auto& [file, iterations, length] : {Expected{"vec_block_fresh_vgg.csv.gz", 3, 3172},
                                                 {"vec_run_5_vgg.csv.gz", 4, 3172},
                                                 {"memInfo_alex_20itr_100size_cudaMalloc.text.gz", 19, 188},
                                                 {"memInfo_vgg_20itr_100size_cudaMalloc.text.gz", 19, 1020}}) {
    const auto path = shared_data("singa/" + file);
    if (!path) return;
    INFO(file);
    const Trace trace = load_trace(*path);
    const std::vector<Mark>& marks = trace.data().marks;
    REQUIRE(marks.size() == iterations);
    CHECK(marks[1].event - marks[0].event == length);
  }
}

TEST_CASE("the durations of AutoSwap's VGG log add up to its clock") {
  const auto path = shared_data("singa/vec_block_fresh_vgg.csv.gz");
  if (!path) return;
  Nanos time;
  const Trace trace = load_trace(*path);
  for (const Op& op : trace.ops()) time += op.duration;
  CHECK(time == Nanos{1529635706328248071 - 1529635706083534856});
}

TEST_CASE("snapshots of other projects are read completely, and no free is unmatched") {
  struct Expected {
    std::string file;
    std::size_t buffers, born_before;
  };
  for (const auto& [file, buffers, born_before] : {Expected{"at_memory_snapshot_True_ctx128", 3255, 1068},
                                                   {"bc_mem", 2609, 447},
                                                   {"cr_ftcourse", 4127, 622},
                                                   {"cs_code_location", 3025, 0},
                                                   {"js_eor_nn", 1966, 31},
                                                   {"kk_memory_ctx128_fullstep_", 7095, 325},
                                                   {"nh_memory_snapshot_forward", 5883, 1745},
                                                   {"wl_medium_128_training", 7190, 664},
                                                   {"wl_medium_512_inference", 1889, 223},
                                                   {"yy_oom_snapshot", 460, 460}}) {
    const auto path = shared_data("torch_snapshot/" + file + ".pickle.xz");
    if (!path) return;
    INFO(file);
    const Trace trace = load_trace(*path);
    CHECK(trace.buffers().size() == buffers);
    CHECK(std::count_if(trace.buffers().begin(), trace.buffers().end(),
                        [](const Buffer& b) { return b.born_before; }) == static_cast<std::ptrdiff_t>(born_before));
    CHECK(trace.data().losses == Losses{});
  }
}

}  // namespace tidepool::import_test
