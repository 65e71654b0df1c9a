// Real Kineto files and execution traces, against counts that were made without this program.
#include <algorithm>
#include <set>

#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/torch_et.hpp"
#include "traces/iteration.hpp"
#include "traces/summary.hpp"

namespace tidepool::kineto_test {

using tests::shared_data;

TEST_CASE("Kineto files of all generations have all their kernels, copies and memsets, each with its launch") {
  struct Expected {
    std::string file;
    std::size_t ops, kernels, collectives, copies, iterations, streams;
  };
  for (const auto& [file, ops, kernels, collectives, copies, iterations, streams] :
       {Expected{"kineto/hta_amd_mi250_minitoy.json.gz", 16, 14, 0, 2, 2, 1},
        {"kineto/hta_critical_path_alexnet.json.gz", 98, 79, 0, 16, 1, 2},
        {"kineto/hta_df_index_resolver.json.gz", 22290, 17350, 2020, 2040, 5, 2},
        {"kineto/hta_event_sync_multi_stream.json.gz", 6, 3, 0, 0, 1, 3},
        {"kineto/hta_trace_diff_control.json.gz", 9450, 8508, 60, 228, 6, 4},
        {"kineto/kineto_tb_resnet50_w0_step1.json.gz", 9096, 8772, 0, 12, 6, 1},
        {"torch_et/hta_simple_add_kineto.json.gz", 4, 4, 0, 0, 1, 1},
        {"torch_et/param_resnet_kineto.json.gz", 10113, 9628, 0, 123, 1, 3}}) {
    const auto path = shared_data(file);
    if (!path) return;
    INFO(file);
    const Trace trace = load_trace(*path);
    const Summary sum = summarize(trace);
    CHECK(sum.ops == ops);
    CHECK(sum.kernels == kernels);
    CHECK(sum.copies == copies);
    CHECK(sum.iterations == iterations);
    CHECK(sum.streams == streams);
    CHECK(std::count_if(trace.ops().begin(), trace.ops().end(), [](const Op& op) {
            return op.kind == OpKind::kCollective;
          }) == static_cast<std::ptrdiff_t>(collectives));
    CHECK(trace.data().losses == Losses{});
  }
}

TEST_CASE("the memory of a real Kineto file adds up to its totals") {
  const auto path = shared_data("kineto/hta_df_index_resolver.json.gz");
  if (!path) return;
  const Trace trace = load_trace(*path);
  CHECK(trace.events().size() == 26770 + 22290);
  CHECK(trace.buffers().size() == 13385 + 1);
  CHECK(trace.buffers()[0].size == Bytes{4096614400});  // before the first event
  CHECK(trace.ideal_peak() == Bytes{6629508096});       // the largest "Total Allocated"
  CHECK(trace.data().losses == Losses{});               // no total is off, no free unmatched
  CHECK_THROWS_WITH(load_trace(*path, "auto", 0), *path + ": no device 0; the file has 1");
}

TEST_CASE("an iteration that is cut out of a real Kineto file is a trace by itself") {
  const auto path = shared_data("kineto/hta_df_index_resolver.json.gz");
  if (!path) return;
  const Trace trace = load_trace(*path);
  std::size_t ops = 0;
  for (std::size_t i = 0; i < 5; ++i) ops += one_iteration(trace, i).ops().size();
  CHECK(ops == 22290);
}

TEST_CASE("real execution traces have all their nodes and storages") {
  // ResNet's file names 872 storages, one of them only for tensors without elements.
  struct Expected {
    std::string file;
    std::size_t nodes, storages;
  };
  for (const auto& [file, nodes, storages] : {Expected{"param_resnet_et.json.gz", 14392, 871},
                                              {"param_resnet_1gpu_et_v111.json.gz", 14392, 871},
                                              {"hta_simple_add_et.json.gz", 38, 4}}) {
    const auto path = shared_data("torch_et/" + file);
    if (!path) return;
    INFO(file);
    const ExecutionTrace trace = parse_execution_trace(read_input(*path));
    std::set<std::int64_t> found;
    for (const EtNode& node : trace.nodes)
      for (const auto* tensors : {&node.inputs, &node.outputs})
        for (const EtTensor& tensor : *tensors)
          if (tensor.device >= 0) found.insert(tensor.storage);
    CHECK(trace.nodes.size() == nodes);
    CHECK(found.size() == storages);
  }
}

TEST_CASE("one program has one trace, whichever schema its execution trace was written in") {
  const auto older = shared_data("torch_et/param_resnet_et.json.gz");
  const auto newer = shared_data("torch_et/param_resnet_1gpu_et_v111.json.gz");
  if (!older || !newer) return;
  const Trace trace = load_trace(*older);
  CHECK(trace.hash() == load_trace(*newer).hash());
  CHECK(trace.ops().size() == 2718);
  const std::string profile = *shared_data("torch_et/param_resnet_kineto.json.gz");
  CHECK_THROWS_WITH(load_trace(*older, "auto", {}, profile),
                    *older +
                        ": 581 of 39416 operators of the profile have a number and a name of the execution "
                        "trace; expected a profile of the same run");
}

TEST_CASE("every kernel of a real profile belongs to an operator of its execution trace") {
  const auto path = shared_data("torch_et/hta_simple_add_et.json.gz");
  if (!path) return;
  const Trace trace = load_trace(*path, "auto", {}, *shared_data("torch_et/hta_simple_add_kineto.json.gz"));
  CHECK(trace.data().meta.at("durations") == "4 of the profile's 4 kernels, copies and memsets belong to an op");
  CHECK(summarize(trace).duration == Nanos{16'000});
}

}  // namespace tidepool::kineto_test
