#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::trace_commands_test {

using Json = nlohmann::json;

namespace {

/// A parameter of 100 B and an activation of 10 B; a random kernel of 3 ns, a copy of 4 ns, and a kernel of 5 ns.
Trace small_trace() {
  TraceBuilder build;
  build.meta()["source"] = "hand";
  const BufferId weight = build.existing({.size = 100_B, .kind = BufferKind::kParameter});
  build.mark(MarkKind::kIteration, "0");
  const BufferId a = build.alloc({.size = 10_B, .kind = BufferKind::kActivation});
  build.run({.random = true, .duration = 3_ns},
            {{weight, Access::kRead, Evidence::kSchema}, {a, Access::kWrite, Evidence::kSchema}});
  build.run({.stream = build.stream("7"), .kind = OpKind::kCopy, .duration = 4_ns},
            {{a, Access::kRead, Evidence::kCopy}});
  build.run({.duration = 5_ns}, {{a, Access::kView}});
  build.free(a);
  build.losses().unmatched_frees = 2;
  return build.finish();
}

std::string small_file(const ScratchFolder& scratch) {
  const std::string path = scratch.file("small.jsonl");
  write_file(path, to_jsonl(small_trace()));
  return path;
}

}  // namespace

TEST_CASE("tidepool info --json prints every key that the contract names") {
  const ScratchFolder scratch;
  const ProgramResult result = run_program({"info", small_file(scratch), "--json"});
  CHECK(result.code == 0);
  const Json info = Json::parse(result.out);
  CHECK(info["buffers"] == 2);
  CHECK(info["versions"] == 3);
  CHECK(info["views"] == 1);
  CHECK(info["ops"] == 3);
  CHECK(info["kernels"] == 2);
  CHECK(info["copies"] == 1);
  CHECK(info["random_ops"] == 1);
  CHECK(info["iterations"] == 1);
  CHECK(info["ideal_peak_bytes"] == 110);
  CHECK(info["kind_bytes"]["parameter"] == 100);
  CHECK(info["duration_ns"] == 12);
  CHECK(info["streams"] == 2);
  CHECK(info["devices"] == 1);
  CHECK(info["evidence"] ==
        Json{{"schema", 2}, {"copy", 1}, {"const", 0}, {"instrumented", 0}, {"parameter", 0}, {"inferred", 1}});
  CHECK(info["losses"] ==
        Json{{"dropped_records", 0}, {"unmatched_frees", 2}, {"unknown_pointers", 0}, {"clock_residual_ns", 0}});
  CHECK(info["source"] == "hand");
  CHECK(info["trace_hash"] == small_trace().hash());
  CHECK_THAT(result.err, ContainsSubstring("small.jsonl: 2 frees of memory whose allocation was not seen\n"));
}

TEST_CASE("a trace goes through import and export and comes back the same") {
  const ScratchFolder scratch;
  const std::string tide = scratch.file("a.tide"), text = scratch.file("b.jsonl");
  const Trace trace = tests::random_trace(9, 200);
  write_file(scratch.file("a.jsonl"), to_jsonl(trace));
  CHECK(run_program({"import", scratch.file("a.jsonl"), "-o", tide}).code == 0);
  CHECK(run_program({"export", tide, "--to", "jsonl", "-o", text}).code == 0);
  CHECK(load_trace(tide).data() == trace.data());
  CHECK(load_trace(text).data() == trace.data());
}

TEST_CASE("exported lifetimes have the ideal peak as their largest load") {
  const ScratchFolder scratch;
  const ProgramResult result = run_program({"export", small_file(scratch), "--to", "csv"});
  // The trace has five steps: alloc, three runs, free. The weight lives from before the first to after the last.
  CHECK(result.out == "id,lower,upper,size\n0,0,6,100\n1,1,5,10\n");
}

TEST_CASE("commands that look at a trace's form first take a pipe and a folder, too") {
  const ScratchFolder scratch;
  const auto piped = [&](const std::string& arguments) {
    const std::string line = fmt::format("cat '{}' | '{}' {} > '{}' 2>&1", small_file(scratch), paths::program(),
                                         arguments, scratch.file("out"));
    CAPTURE(line);
    CHECK(std::system(line.c_str()) == 0);
    return content_of(scratch.file("out"));
  };
  CHECK(piped("export /dev/stdin --to csv") == "id,lower,upper,size\n0,0,6,100\n1,1,5,10\n");
  CHECK_THAT(piped("pack /dev/stdin"), ContainsSubstring("/dev/stdin: 2 buffers, load 110 B\n"));
  CHECK_THAT(piped("tune /dev/stdin"), ContainsSubstring("best of "));
  CHECK_THAT(piped("fit /dev/stdin --device rtx-3090"), ContainsSubstring("/dev/stdin"));
  piped(fmt::format("report /dev/stdin -o '{}'", scratch.file("report.html")));

  const std::string folder = scratch.file("g10");
  std::filesystem::create_directory(folder);
  const std::string weight = "tensor0 Is weight (global)?: 1, Size in byte: 100, Range:0--100\n";
  write_file(folder + "/tensors.config", weight);
  write_file(folder + "/kernels.config",
             "Kernel ID: 0, Name: Apply_Grad\nInput Tensors:\n" + weight + "Output Tensors:\n" + weight);
  write_file(folder + "/times.txt", "0000 1 ms\n");
  CHECK_THAT(run_program({"pack", folder}).out, ContainsSubstring(": 1 buffer, load 100 B\n"));
  CHECK_THAT(run_program({"tune", folder}).out, ContainsSubstring("best of "));
}

TEST_CASE("unsupported imports and exports are refused with exit code 2") {
  const ScratchFolder scratch;
  const std::string file = small_file(scratch);
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, ContainsSubstring(message));
  };
  refused({"export", file, "--to", "jsonn"}, "tidepool: no form named 'jsonn', did you mean 'jsonl'?; known: ");
  refused({"import", file, "--format", "dtrr", "-o", scratch.file("x")},
          "tidepool: no format named 'dtrr', did you mean 'dtr'?; known: ");
  refused({"import", file, "--device", "1", "-o", scratch.file("x")}, ": --device 1: the form jsonl has no devices\n");
  refused({"import", file, "--with", "p.json", "-o", scratch.file("x")},
          ": --with p.json: the form jsonl takes no second file\n");
  refused({"import", scratch.file("."), "--with", "p.json", "-o", scratch.file("x")},
          ": --with p.json: a folder takes no second file\n");
  refused({"info", scratch.file("nothing")}, "nothing: cannot be opened: No such file or directory\n");
  write_file(scratch.file("text"), "neither this nor that\n");
  refused({"info", scratch.file("text")}, "text: text in no form that tidepool reads; known: ");
  write_file(scratch.file("binary"), std::string_view{"\x7f"
                                                      "ELF\0\1",
                                                      6});
  refused({"info", scratch.file("binary")}, "binary: binary data in no form that tidepool reads; known: ");
  write_file(scratch.file("empty"), "");
  refused({"info", scratch.file("empty")}, "empty: is empty; expected a trace; known: ");
  write_file(scratch.file("utf16"), std::string_view{"\xff\xfe{\0\n\0", 6});
  refused({"info", scratch.file("utf16")}, "utf16: is text in UTF-16; expected UTF-8; known: ");
  refused({"import", file, "-o", scratch.file("no/folder")},
          "no/folder: cannot be written: No such file or directory\n");
}

TEST_CASE("a file that was cut off says so where it is used") {
  const ScratchFolder scratch;
  const std::string bytes = [&] {
    run_program({"import", small_file(scratch), "-o", scratch.file("whole.tide")});
    return std::string{read_input(scratch.file("whole.tide")).bytes()};
  }();
  write_file(scratch.file("cut.tide"), std::string_view{bytes}.substr(0, bytes.size() - 150));
  const ProgramResult result = run_program({"info", scratch.file("cut.tide"), "--json"});
  CHECK(result.code == 0);
  CHECK(Json::parse(result.out)["losses"]["dropped_records"] == 1);
  CHECK_THAT(result.err, ContainsSubstring("cut.tide: recovered 5 steps, to the last whole chunk; byte "));
  CHECK_THAT(result.err, ContainsSubstring("cut.tide: 1 or more records were lost\n"));
}

TEST_CASE("tidepool make writes a synthetic step that says that it is one") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("gpt.tide");
  const ProgramResult made = run_program({"make", "gpt", "--layers", "2", "--hidden", "64", "-o", path});
  CHECK(made.code == 0);
  const Json info = Json::parse(run_program({"info", path, "--json"}).out);
  CHECK(info["ops"] == 2 * 30 + 12);
  CHECK(info["source"] == "synthetic: GPT-like");
  const ProgramResult wrong = run_program({"make", "gpd", "-o", path});
  CHECK(wrong.code == 2);
  const ProgramResult image = run_program({"make", "resnet", "--image", "6", "-o", path});
  CHECK(image.code == 2);
  CHECK(image.err == "tidepool: image of 6 pixels; expected a multiple of 4\n");
  CHECK(wrong.err == "tidepool: no model named 'gpd', did you mean 'gpt'?; known: gpt, resnet\n");
}

TEST_CASE("tidepool make refuses options of the other model, and a rate that is no number") {
  const ScratchFolder scratch;
  const auto said = [&](const std::string& model, const std::string& option, const std::string& value) {
    const ProgramResult made = run_program({"make", model, option, value, "-o", scratch.file("made.tide")});
    CHECK(made.code == 2);
    return made.err;
  };
  CHECK(said("resnet", "--heads", "4") == "tidepool: --heads: is of gpt; expected no --heads for resnet\n");
  CHECK(said("gpt", "--image", "32") == "tidepool: --image: is of resnet; expected no --image for gpt\n");
  CHECK(said("gpt", "--teraflops", "nan") ==
        "tidepool: --teraflops: 'nan' is no number; expected one from 0.001 to 1000000\n");
}

}  // namespace tidepool::trace_commands_test
