// Two recordings of a job: what differs in their memory, in words and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "simulator/studies/fit/stated_memory.hpp"
#include "traces/names.hpp"
#include "traces/step/trace_diff.hpp"
#include "traces/trace.hpp"

namespace tidepool {

template <>
std::span<const std::string_view> words<Difference>();

/// Two traces with the names under which messages have them, and what differs.
struct Compared {
  std::string name_a, name_b;
  Trace a, b;
  StatedMemory stated_a, stated_b;
  TraceDiff diff;

  bool same_reserved() const { return stated_a.reserved == stated_b.reserved || !both_stated(); }
  bool both_stated() const { return stated_a.reserved > Bytes{} && stated_b.reserved > Bytes{}; }
  bool same() const { return diff.same() && same_reserved(); }
};

/// Compares two traces. @param name_a, name_b  for messages  @throws InputError  if one has several devices
Compared compare_recordings(const std::string& name_a, Trace a, const std::string& name_b, Trace b);
/// Loads and compares them.
Compared compare_recordings(const std::string& path_a, const std::string& path_b);

/// The answer in one sentence.
std::string first_line(const Compared& found);

/// "clone.py:19", "head and 12 other modules".
std::string cause_text(const DifferenceRow& row);

/// Where the buffers of a row end in both traces; "" if the row is not about that, or if no op says it.
std::string ends_text(const Compared& found, const DifferenceRow& row);

/// What `diff --json` prints.
nlohmann::ordered_json to_json(const Compared& found);

}  // namespace tidepool
