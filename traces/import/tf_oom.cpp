// The dump that TensorFlow's BFC allocator logs when memory runs out, alone or among other lines of a log:
//   ... bfc_allocator.cc:1046] Next region of size 1048576
//   ... bfc_allocator.cc:1066] InUse at 7f0c00000000 of size 1280 by op Fill action_count 27 step 0 next 1
//   ... bfc_allocator.cc:1066] Free  at 7f0c00000500 of size 256 next 18446744073709551615
// Until 2019, a chunk in use is "Chunk at 0x10005a00000 of size 256". Chunks in use are buffers at their addresses; all
// are alive at the one instant of the trace. Of several dumps, the last one counts.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

struct Chunk {
  std::int64_t address = 0, size = 0;
  std::string_view op;
};

/// The text behind `key` up to `end`; none if the line lacks the key.
std::optional<std::string_view> between(std::string_view line, std::string_view key, std::string_view end) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + key.size());
  return line.substr(0, line.find(end));
}

class DumpReader {
 public:
  explicit DumpReader(const Input& input) : path_{input.path()}, lines_{path_, input.bytes()} {}

  Trace run() {
    bool any = false;
    while (lines_.next()) {
      if (lines_.text().find("Current allocation summary follows") != std::string_view::npos) begin_dump();
      if (lines_.text().find("bfc_allocator.cc") == std::string_view::npos) continue;
      any = true;
      if (const auto size = between(lines_.text(), "Next region of size ", " ")) reserved_ += whole(*size);
      if (const auto used = between(lines_.text(), "InUse at ", " ")) add_chunk(*used);
      if (const auto used = between(lines_.text(), "] Chunk at ", " ")) add_chunk(*used);
    }
    if (chunks_.empty())
      refuse("{}: no chunk in use; expected {}", path_,
             any ? "lines as in 'InUse at 7f0c00000000 of size 256'"
                 : "the lines of bfc_allocator.cc from TensorFlow's log");
    return build();
  }

 private:
  void begin_dump() {
    chunks_.clear();
    sizes_ = {};
    reserved_ = 0;
  }

  std::int64_t whole(std::string_view text) const {
    const std::optional<std::int64_t> number = parse_whole(text);
    if (!number || *number < 0 || *number > Total::kMost)
      lines_.refuse("the size is '{}'; expected a whole number of bytes", excerpt(text));
    return *number;
  }

  void add_chunk(std::string_view address) {
    const std::string with_prefix = address.starts_with("0x") ? std::string{address} : fmt::format("0x{}", address);
    const std::optional<std::int64_t> at = parse_whole(with_prefix);
    if (!at) lines_.refuse("the address is '{}'; expected one as in 7f0c00000000", excerpt(address));
    const auto size = between(lines_.text(), " of size ", " ");
    if (!size) lines_.refuse("a chunk without a size; expected 'of size' and a number of bytes");
    Chunk chunk{*at, whole(*size), between(lines_.text(), " by op ", " action_count").value_or("")};
    add(sizes_, chunk.size, "sizes", lines_);
    chunks_.push_back(chunk);
  }

  Trace build() {
    TraceBuilder builder;
    for (const Chunk& chunk : chunks_) {
      Buffer spec;
      spec.size = Bytes{chunk.size};
      spec.address = chunk.address;
      spec.name = builder.text(chunk.op);
      builder.existing(spec);
    }
    builder.meta()["source"] = "tf-oom";
    if (reserved_ > 0) builder.meta()["reserved_peak_bytes"] = std::to_string(reserved_);
    builder.meta()["lacks"] = "events: it has only what was allocated when memory ran out";
    return builder.finish();
  }

  std::string path_;
  Lines lines_;
  std::vector<Chunk> chunks_;
  Total sizes_;
  std::int64_t reserved_ = 0;
};

int sniff_tf_oom(std::string_view head) { return head.find("bfc_allocator.cc") != std::string_view::npos ? 80 : 0; }

const RegisterImporter kTfOom{{"tf-oom",
                               "the dump of TensorFlow's BFC allocator when memory ran out, alone or in a log",
                               {".log", ".txt"},
                               sniff_tf_oom,
                               read_tf_oom}};

}  // namespace

Trace read_tf_oom(const Input& input) { return DumpReader{input}.run(); }

}  // namespace tidepool
