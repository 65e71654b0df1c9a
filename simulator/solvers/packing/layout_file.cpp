#include "simulator/solvers/packing/layout_file.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "traces/base/error.hpp"
#include "traces/base/text.hpp"
#include "traces/jsonl/json_lines.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::int64_t kMostRequests = std::int64_t{1} << 31;

/// @return  the number of requests that follow
std::size_t read_header(JsonFields& fields, LayoutFile& file) {
  if (const std::int64_t format = fields.required_integer("tidepool_layout"); format != kFormat)
    throw InputError{fmt::format("layout format {}; this tidepool reads format {}", format, kFormat)};
  const auto bytes = [&](std::string_view key, std::int64_t least) {
    return Bytes{fields.required_integer(key, least, kNoLimit.count())};
  };
  file.trace_hash = fields.text("trace_hash", "");
  file.alignment = bytes("alignment_bytes", 1);
  file.height = bytes("height_bytes", 0);
  file.lower_bound = bytes("lower_bound_bytes", 0);
  file.proof = fields.text("proof", "");
  const std::int64_t requests = fields.required_integer("requests", 0, kMostRequests);
  file.existing = static_cast<std::size_t>(fields.required_integer("existing", 0, requests));
  return static_cast<std::size_t>(requests);
}

}  // namespace

LayoutFile layout_file(const Trace& trace, std::uint16_t device, Bytes alignment, const Layout& layout) {
  const Instance instance = lifetimes_of(trace, device, alignment);
  std::vector<Bytes> offsets(trace.buffers().size());
  for (std::size_t i = 0; i < instance.items.size(); ++i) offsets[instance.items[i].id] = layout.offsets[i];

  LayoutFile file{trace.hash(), alignment, layout.height, layout.lower_bound, layout.proof, 0, {}};
  const auto request = [&](std::uint32_t id) { file.requests.push_back({trace.buffers()[id].size, offsets[id]}); };
  for (std::uint32_t id = 0; id < trace.buffers().size(); ++id)
    if (trace.buffers()[id].device == device && trace.buffers()[id].born_before) request(id);
  file.existing = file.requests.size();
  for (const Event& event : trace.events())
    if (event.kind == EventKind::kAlloc && trace.buffers()[event.id].device == device) request(event.id);
  return file;
}

std::string layout_text(const LayoutFile& file) {
  const nlohmann::ordered_json header{{"tidepool_layout", kFormat},
                                      {"trace_hash", file.trace_hash},
                                      {"alignment_bytes", file.alignment.count()},
                                      {"height_bytes", file.height.count()},
                                      {"lower_bound_bytes", file.lower_bound.count()},
                                      {"proof", file.proof},
                                      {"existing", file.existing},
                                      {"requests", file.requests.size()}};
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}\n", json_text(header));
  for (const PlannedRequest& request : file.requests)
    fmt::format_to(out, "{{\"size_bytes\":{},\"offset_bytes\":{}}}\n", request.size.count(), request.offset.count());
  return fmt::to_string(text);
}

LayoutFile parse_layout(const Input& input) {
  LayoutFile file;
  std::size_t expected = 0;
  bool begun = false;
  for_each_json_line(input, [&](JsonFields& fields) {
    if (!begun) {
      expected = read_header(fields, file);
      begun = true;
    } else if (file.requests.size() == expected) {
      throw InputError{fmt::format("one request more than the {} that the first line says", expected)};
    } else {
      const auto bytes = [&](std::string_view key) { return Bytes{fields.required_integer(key, 0, kNoLimit.count())}; };
      file.requests.push_back({bytes("size_bytes"), bytes("offset_bytes")});
    }
  });
  if (!begun)
    throw InputError{fmt::format("{}: {}; expected a layout", input.path(),
                                 input.bytes().empty() ? "is empty" : "has empty lines only")};
  if (file.requests.size() != expected)
    throw InputError{fmt::format("{}: ends after {} of {} requests; expected a complete file", input.path(),
                                 file.requests.size(), expected)};
  return file;
}

LayoutFile read_layout(const std::string& path) { return parse_layout(read_input(path)); }

}  // namespace tidepool
