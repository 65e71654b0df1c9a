// The tables that G10's simulator writes and reads (Zhang et al., MICRO 2023; platformxlab/G10), in one folder:
//   *kernels.config  blocks "Kernel ID: 0, Name: Add_Forward", "Input Tensors:", "Output Tensors:" and tensors below
//                    them: "tensor5 Is weight (global)?: 1, Size in byte: 8192, Range:0--8192"
//   *tensors.config  every tensor once, in the same form
//   *.txt            "0001 599.213074 ms" for every kernel: how long it runs
// Kernels run in the order of the file, on one stream. A global tensor exists before the step and after it; any other
// lives from its first use to its last. An output that is not the first use of its tensor updates it in place, since
// the tables do not say whether it is overwritten completely.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/base/folder.hpp"
#include "traces/base/input.hpp"
#include "traces/base/lines.hpp"
#include "traces/base/text.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

struct Tensor {
  std::int64_t id = 0, size = 0;
  bool global = false;
};

struct KernelUse {
  std::size_t tensor = 0;  // index into Tables::tensors
  bool input = false, output = false;
};

struct Kernel {
  std::string_view name;
  std::vector<KernelUse> uses;
  Nanos duration;
};

struct Tables {
  std::vector<Tensor> tensors;
  std::unordered_map<std::int64_t, std::size_t> index;  // by id
  std::vector<Kernel> kernels;
};

bool skip(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

/// A whole number, at least 0, at the front of `text`.
std::optional<std::int64_t> take_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::int64_t> value = parse_whole(text.substr(0, end));
  if (value) text.remove_prefix(end);
  return value;
}

Tensor parse_tensor(const Lines& lines) {
  std::string_view rest = lines.text();
  constexpr std::int64_t kMostSize = std::int64_t{1} << 50;
  const auto id = skip(rest, "tensor") ? take_number(rest) : std::nullopt;
  const auto global = id && skip(rest, " Is weight (global)?: ") ? take_number(rest) : std::nullopt;
  const auto size = global && skip(rest, ", Size in byte: ") ? take_number(rest) : std::nullopt;
  if (!size || *global > 1 || *size > kMostSize || !(rest.empty() || rest.starts_with(", ")))
    lines.refuse("'{}'; expected a tensor, as in tensor5 Is weight (global)?: 1, Size in byte: 8192",
                 excerpt(lines.text()));
  return {*id, *size, *global == 1};
}

void read_tensors(const Input& input, Tables& tables) {
  Lines lines{input.path(), input.bytes()};
  Total sizes;
  while (lines.next()) {
    if (lines.text().empty()) continue;
    const Tensor tensor = parse_tensor(lines);
    if (!tables.index.try_emplace(tensor.id, tables.tensors.size()).second)
      lines.refuse("tensor{} is listed a second time", tensor.id);
    add(sizes, tensor.size, "sizes", lines);
    tables.tensors.push_back(tensor);
  }
}

void add_use(const Lines& lines, Tables& tables, bool output) {
  const Tensor tensor = parse_tensor(lines);
  const auto known = tables.index.find(tensor.id);
  if (known == tables.index.end()) lines.refuse("tensor{} is not in the table of tensors", tensor.id);
  const Tensor& listed = tables.tensors[known->second];
  if (listed.size != tensor.size || listed.global != tensor.global)
    lines.refuse("tensor{} has {} bytes and is {}; the table of tensors has {} bytes and {}", tensor.id, tensor.size,
                 tensor.global ? "global" : "not global", listed.size, listed.global ? "global" : "not global");
  std::vector<KernelUse>& uses = tables.kernels.back().uses;
  const auto same =
      std::find_if(uses.begin(), uses.end(), [&](const KernelUse& use) { return use.tensor == known->second; });
  KernelUse& use = same != uses.end() ? *same : uses.emplace_back(KernelUse{known->second, false, false});
  (output ? use.output : use.input) = true;
}

void read_kernels(const Input& input, Tables& tables) {
  Lines lines{input.path(), input.bytes()};
  enum class Part : std::uint8_t { kNone, kHead, kInputs, kOutputs } part = Part::kNone;
  while (lines.next()) {
    std::string_view rest = lines.text();
    if (skip(rest, "Kernel ID: ")) {
      const std::optional<std::int64_t> id = take_number(rest);
      if (!id || *id != static_cast<std::int64_t>(tables.kernels.size()) || !skip(rest, ", Name: ") || rest.empty())
        lines.refuse("'{}'; expected Kernel ID: {}, Name: and a name", excerpt(lines.text()), tables.kernels.size());
      if (!is_utf8(std::string{rest}))
        lines.refuse("the kernel is '{}', which is not UTF-8; expected a file in UTF-8", excerpt(rest));
      tables.kernels.push_back({rest, {}, {}});
      part = Part::kHead;
    } else if (rest == "Input Tensors:" || rest == "Output Tensors:") {
      if (part == Part::kNone) lines.refuse("'{}' before any kernel", rest);
      part = rest.starts_with('I') ? Part::kInputs : Part::kOutputs;
    } else if (rest.starts_with("tensor")) {
      if (part != Part::kInputs && part != Part::kOutputs)
        lines.refuse("a tensor outside of Input Tensors: and Output Tensors:");
      add_use(lines, tables, part == Part::kOutputs);
    } else if (!(rest.empty() || rest.starts_with("____") || rest.starts_with("Parent OP ID:") ||
                 rest.starts_with("Execution Time:") || rest.starts_with("Workspace"))) {
      lines.refuse("'{}'; expected a kernel, its Input Tensors:, its Output Tensors: or a tensor", excerpt(rest));
    }
  }
  if (tables.kernels.empty()) throw InputError{input.path() + ": no kernel; expected Kernel ID: 0, Name: and a name"};
}

void read_times(const Input& input, Tables& tables) {
  constexpr double kMostMilliseconds = 1e9;
  Lines lines{input.path(), input.bytes()};
  std::size_t next = 0;
  Total times;
  while (lines.next()) {
    std::string_view rest = lines.text();
    if (rest.empty()) continue;
    const std::optional<std::int64_t> id = take_number(rest);
    double time = -1;
    if (id && skip(rest, " ")) {
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), time);
      if (error != std::errc{}) time = -1;
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    }
    if (!(time >= 0 && time <= kMostMilliseconds) || rest != " ms")
      lines.refuse("'{}'; expected a kernel and its time, as in 0001 599.213074 ms", excerpt(lines.text()));
    if (*id != static_cast<std::int64_t>(next)) lines.refuse("kernel {}; expected kernel {}", *id, next);
    if (next >= tables.kernels.size())
      lines.refuse("a time for kernel {}; the table of kernels has {}", next, tables.kernels.size());
    const Nanos duration{std::llround(time * 1e6)};
    add(times, duration.count(), "times", lines);
    tables.kernels[next++].duration = duration;
  }
  if (next < tables.kernels.size())
    throw InputError{fmt::format("{}: times for {} of the {} kernels in the table of kernels; expected one for each",
                                 input.path(), next, tables.kernels.size())};
}

Phase phase_of(std::string_view kernel) {
  if (kernel.find("Apply_Grad") != std::string_view::npos) return Phase::kOptimizer;
  if (kernel.ends_with("_Forward")) return Phase::kForward;
  const bool backward =
      kernel.find("Backward") != std::string_view::npos || kernel.find("MultiGredient") != std::string_view::npos;
  return backward ? Phase::kBackward : Phase::kUnknown;
}

Trace to_trace(const Tables& tables) {
  TraceBuilder builder;
  builder.meta()["source"] = "g10";
  builder.meta()["time"] = "measured";
  constexpr std::size_t kUnused = ~std::size_t{0};
  std::vector<std::size_t> last(tables.tensors.size(), kUnused);
  for (std::size_t k = 0; k < tables.kernels.size(); ++k)
    for (const KernelUse& use : tables.kernels[k].uses) last[use.tensor] = k;
  std::vector<BufferId> buffers(tables.tensors.size());
  const auto spec = [&](std::size_t tensor, BufferKind kind) {
    Buffer buffer;
    buffer.size = Bytes{tables.tensors[tensor].size};
    buffer.name = builder.text(fmt::format("tensor{}", tables.tensors[tensor].id));
    buffer.kind = kind;
    return buffer;
  };
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (tables.tensors[i].global && last[i] != kUnused) buffers[i] = builder.existing(spec(i, BufferKind::kParameter));
  builder.mark(MarkKind::kIteration, "0");
  Nanos now;
  for (std::size_t k = 0; k < tables.kernels.size(); ++k) {
    const Kernel& kernel = tables.kernels[k];
    const Phase phase = phase_of(kernel.name);
    std::vector<TraceBuilder::Touch> touches;
    for (const KernelUse& use : kernel.uses) {
      BufferId& buffer = buffers[use.tensor];
      const bool first = !buffer.valid();
      if (first)
        buffer = builder.alloc(
            spec(use.tensor, phase == Phase::kBackward ? BufferKind::kGradient : BufferKind::kActivation));
      touches.push_back({buffer,
                         !use.output           ? Access::kRead
                         : first && !use.input ? Access::kWrite
                                               : Access::kReadWrite,
                         Evidence::kSchema, VersionId{}});
    }
    Op op;
    op.name = builder.text(kernel.name);
    op.phase = phase;
    op.start = now;
    op.duration = kernel.duration;
    now += kernel.duration;
    builder.run(op, touches);
    for (const KernelUse& use : kernel.uses)
      if (last[use.tensor] == k && !tables.tensors[use.tensor].global) builder.free(buffers[use.tensor]);
  }
  return builder.finish();
}

struct Files {
  std::vector<std::string> kernels, tensors, times;
};

/// G10's three tables in a folder, found by the names of the files without a suffix of compression. G10's other tables,
/// of times under page faults and of workspaces, are ignored.
Files tables_in(const std::string& folder) {
  Files files;
  for (const std::string& path : files_in(folder)) {
    std::string_view stem = path;
    for (const std::string_view packed : {".gz", ".xz", ".zst"})
      if (stem.ends_with(packed)) stem.remove_suffix(packed.size());
    if (stem.ends_with("kernels.config")) files.kernels.push_back(path);
    if (stem.ends_with("tensors.config")) files.tensors.push_back(path);
    const bool other = stem.ends_with("PF.txt") || stem.ends_with("Workspace.txt");
    if (stem.ends_with(".txt") && !other) files.times.push_back(path);
  }
  return files;
}

const std::string& the_one(const std::vector<std::string>& paths, const std::string& folder, std::string_view what) {
  if (paths.empty())
    throw InputError{
        fmt::format("{}: a folder without {}; expected a file, or a folder with G10's three tables", folder, what)};
  if (paths.size() > 1)
    throw InputError{fmt::format("{}: {} and {}; expected one {}", folder, paths[0], paths[1], what)};
  return paths[0];
}

Trace read_folder(const std::string& folder, std::optional<std::size_t>) {
  const Files files = tables_in(folder);
  const Input kernels = read_input(the_one(files.kernels, folder, "kernels.config"));
  const Input tensors = read_input(the_one(files.tensors, folder, "tensors.config"));
  const Input times = read_input(the_one(files.times, folder, ".txt with kernel times"));
  return read_g10(kernels, tensors, times);
}

/// Reads PREFIXkernels.config with PREFIXtensors.config in its folder, and the .txt whose name begins with PREFIX.
Trace read_beside(const Input& kernels) {
  const std::filesystem::path path{kernels.path()};
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::string name = path.filename().string();
  const std::string prefix = name.substr(0, name.find("kernels.config"));
  Files files = tables_in(folder);
  for (std::vector<std::string>* paths : {&files.tensors, &files.times})
    std::erase_if(*paths, [&](const std::string& other) {
      return !std::filesystem::path{other}.filename().string().starts_with(prefix);
    });
  const Input tensors = read_input(the_one(files.tensors, folder, prefix + "tensors.config"));
  const Input times = read_input(the_one(files.times, folder, prefix + "*.txt with kernel times"));
  return read_g10(kernels, tensors, times);
}

int sniff_g10(std::string_view head) { return head.starts_with("Kernel ID: ") ? 90 : 0; }

const RegisterImporter kG10{{.name = "g10",
                             .summary = "G10's tables: a folder with kernels.config, tensors.config and times",
                             .extensions = {".config"},
                             .sniff = sniff_g10,
                             .read = read_beside,
                             .read_device = {},
                             .read_folder = read_folder}};

}  // namespace

Trace read_g10(const Input& kernels, const Input& tensors, const Input& times) {
  Tables tables;
  read_tensors(tensors, tables);
  read_kernels(kernels, tables);
  read_times(times, tables);
  return to_trace(tables);
}

}  // namespace tidepool
