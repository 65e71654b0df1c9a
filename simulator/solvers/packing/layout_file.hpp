// A planned layout in a file, for later steps. It has JSON lines. The first line describes the plan. Each other line is
// a request, in program order; requests of buffers that exist before the step come first:
//
//   {"tidepool_layout":1,"trace_hash":"...","alignment_bytes":512,"height_bytes":1536,"lower_bound_bytes":1536,
//    "proof":"load","existing":1,"requests":2}                                                         (one line)
//   {"size_bytes":1000,"offset_bytes":0}
//   {"size_bytes":512,"offset_bytes":1024}
#pragma once

#include <string>
#include <vector>

#include "simulator/planner.hpp"
#include "traces/base/input.hpp"

namespace tidepool {

/// The place of a step's n-th request.
struct PlannedRequest {
  Bytes size = {};  ///< as the program asks
  Bytes offset = {};
  bool operator==(const PlannedRequest&) const = default;
};

struct LayoutFile {
  std::string trace_hash;  ///< of the step that was planned
  Bytes alignment{1};
  Bytes height, lower_bound;
  std::string proof;
  std::size_t existing = 0;  ///< number of first requests, those of buffers that exist before the step
  std::vector<PlannedRequest> requests;
  bool operator==(const LayoutFile&) const = default;
};

/// The layout of the buffers of one device in the order in which a run asks for them.
/// @param layout  of lifetimes_of(trace, device, alignment)
LayoutFile layout_file(const Trace& trace, std::uint16_t device, Bytes alignment, const Layout& layout);

/// The text of a layout file.
std::string layout_text(const LayoutFile& file);

/// Reads a layout file back, equal to what was written.
/// @throws InputError  "step.layout:3: 'size_bytes' is -1; expected 0 to 4611686018427387904",
///                     "step.layout: ends after 7 of 12 requests; expected a complete file"
LayoutFile parse_layout(const Input& input);
LayoutFile read_layout(const std::string& path);

}  // namespace tidepool
