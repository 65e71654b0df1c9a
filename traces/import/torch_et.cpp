// PyTorch's execution traces: the buffers that each operator reads and writes; durations from the profile of the run.
#include "traces/import/torch_et.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "traces/base/refuse.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/kineto_contexts.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/recorded_names.hpp"
#include "traces/import/torch_et_program.hpp"
#include "traces/import/torch_schema.hpp"

namespace tidepool {
namespace {

/// The activity of the device that a node itself launched, from the profile.
struct Measured {
  Nanos duration;
  std::optional<std::string> stream;
};

class EtImport {
 public:
  EtImport(const ExecutionTrace& file, const Kineto* profile, std::optional<std::int64_t> only)
      : file_{file}, only_{only}, program_{find_program(file, only)}, measured_(file.nodes.size()) {
    check_device();
    if (profile != nullptr) measure(*profile);
    describe(profile);
  }

  Trace run() {
    const std::vector<EtProgram::Call>& calls = program_.calls;
    std::vector<std::vector<std::size_t>> begins(calls.size()), ends(calls.size());
    buffers_.resize(program_.lives.size());
    for (std::size_t i = 0; i < program_.lives.size(); ++i) {
      const EtProgram::Life& life = program_.lives[i];
      if (life.born_before)
        buffers_[i] = builder_.existing(spec(life));
      else
        begins[life.first].push_back(i);
      if (life.last != EtProgram::kNone) ends[life.last].push_back(i);
    }
    find_phases();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (const std::size_t life : begins[i]) buffers_[life] = builder_.alloc(spec(program_.lives[life]));
      if (calls[i].runs) run_call(calls[i]);
      for (const std::size_t life : ends[i]) builder_.free(buffers_[life]);
    }
    return builder_.finish();
  }

 private:
  std::string_view name(std::size_t node) const { return file_.texts[file_.nodes[node].name]; }

  void check_device() const {
    std::set<std::int64_t> devices;
    for (const EtNode& node : file_.nodes)
      for (const auto* tensors : {&node.inputs, &node.outputs})
        for (const EtTensor& tensor : *tensors)
          if (tensor.device >= 0) devices.insert(tensor.device);
    if (devices.empty()) refuse("no tensor on a device; expected the execution trace of a program on a GPU");
    if (only_ && !devices.contains(*only_)) refuse("no device {}; the file has {}", *only_, fmt::join(devices, ", "));
  }

  void measure(const Kineto& profile) {
    const std::vector<std::size_t> nodes = nodes_of_activities(file_, program_, profile);
    std::set<std::string> streams;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const KinetoActivity& activity = profile.activities[i];
      if (only_ && activity.device != *only_) continue;
      ++activities_;
      if (nodes[i] == EtProgram::kNone) continue;
      Measured& measured = measured_[nodes[i]];
      measured.duration += std::max(activity.duration, Nanos{});
      if (!measured.stream) {
        measured.stream = stream_name(activity.device, activity.stream);
        streams.insert(*measured.stream);
        if (streams.size() > kMostStreams) refuse("the profile has more than {} streams", kMostStreams);
      }
      ++joined_;
    }
  }

  void describe(const Kineto* profile) {
    std::map<std::string, std::string>& meta = builder_.meta();
    meta["source"] = "torch-et";
    meta["lifetimes"] = "to the last operator that was given the buffer: frees are not recorded";
    meta["time"] = profile == nullptr ? "estimated" : "measured";
    if (profile == nullptr)
      meta["lacks"] = "durations: import with --with PROFILE of the same run";
    else
      meta["durations"] =
          fmt::format("{} of the profile's {} kernels, copies and memsets belong to an op", joined_, activities_);
  }

  void find_phases() {
    for (std::size_t i = 0; i < file_.nodes.size(); ++i) {
      const std::size_t parent = program_.parents[i];
      phases_.push_back(phase_inside(parent == EtProgram::kNone ? Phase::kUnknown : phases_[parent], name(i),
                                     file_.nodes[i].sequence >= 0));
    }
  }

  static Buffer spec(const EtProgram::Life& life) {
    Buffer buffer;
    buffer.size = Bytes{life.bytes};
    buffer.device = static_cast<std::uint16_t>(life.device);
    return buffer;
  }

  OpKind kind(const EtProgram::Call& call) const {
    const std::string_view called = operator_name(name(call.node));
    if (name(call.node).starts_with("c10d::")) return OpKind::kCollective;
    if (called == "_local_scalar_dense") return OpKind::kCopy;
    const auto is_write = [](const EtProgram::Use& use) { return use.access == Access::kWrite; };
    if (called != "copy_") return OpKind::kKernel;
    if (std::all_of(call.uses.begin(), call.uses.end(), is_write)) return OpKind::kSource;  // from the host
    return std::none_of(call.uses.begin(), call.uses.end(), is_write) ? OpKind::kCopy : OpKind::kKernel;
  }

  void run_call(const EtProgram::Call& call) {
    Op op;
    op.name = builder_.text(name(call.node));
    op.kind = kind(call);
    op.phase = phases_[call.node];
    op.random = draws_random_numbers(operator_name(name(call.node)));
    op.duration = measured_[call.node].duration;
    if (measured_[call.node].stream) op.stream = builder_.stream(*measured_[call.node].stream);
    std::vector<TraceBuilder::Touch> touches;
    for (const EtProgram::Use& use : call.uses) {
      // A buffer that is written in part keeps the rest of its content.
      const bool part = use.access == Access::kWrite && use.bytes < program_.lives[use.life].bytes;
      touches.push_back({buffers_[use.life], part ? Access::kReadWrite : use.access, use.evidence});
    }
    builder_.run(op, touches);
  }

  const ExecutionTrace& file_;
  std::optional<std::int64_t> only_;
  EtProgram program_;
  std::vector<Measured> measured_;  // by node
  std::size_t activities_ = 0;      // number of the profile's activities on the devices that are read
  std::size_t joined_ = 0;          // number of these activities that belong to an op
  TraceBuilder builder_;
  std::vector<Phase> phases_;      // by node
  std::vector<BufferId> buffers_;  // by life
};

int sniff_et(std::string_view head) {
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  return has("\"schema\"") && has("\"nodes\"") && has("execution_") ? 90
         : has("\"schema\"") && has("\"nodes\"")                    ? 80
                                                                    : 0;
}

Trace read_nodes(const Input& input, const Input* profile, std::optional<std::size_t> device) {
  const ExecutionTrace file = parse_execution_trace(input);
  const std::optional<Kineto> kineto = profile != nullptr ? std::optional{parse_kineto(*profile)} : std::nullopt;
  try {
    return to_trace(file, kineto ? &*kineto : nullptr, device);
  } catch (const InputError& error) {
    throw error.at(input.path());
  }
}

const RegisterImporter kEt{
    {.name = "torch-et",
     .summary = "PyTorch's execution traces (ExecutionTraceObserver)",
     .extensions = {".json"},
     .sniff = sniff_et,
     .read = read_torch_et,
     .read_device = [](const Input& input, std::size_t device) { return read_nodes(input, nullptr, device); },
     .read_folder = {},
     .read_with = read_torch_et_with}};

}  // namespace

Trace to_trace(const ExecutionTrace& file, const Kineto* profile, std::optional<std::int64_t> only) {
  return EtImport{file, profile, only}.run();
}

Trace read_torch_et(const Input& input) { return read_nodes(input, nullptr, {}); }

Trace read_torch_et_with(const Input& input, const Input& profile, std::optional<std::size_t> device) {
  return read_nodes(input, &profile, device);
}

}  // namespace tidepool
