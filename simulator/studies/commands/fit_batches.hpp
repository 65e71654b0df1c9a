// The largest batch that fits, as text and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "simulator/studies/fit/largest_batch.hpp"

namespace tidepool {

/// What stands for the batch size in a command.
constexpr const char* kBatch = "{batch}";

/// The command with a batch size in the place of kBatch.
std::vector<std::string> with_batch(std::vector<std::string> command, std::int64_t batch);

/// "batch 16: the job failed: ...; 8 is the largest that was seen to fit".
std::string ended_text(const LargestBatch& found);

/// A line: "batch       8 is the largest that fits; recorded: 8 (3.10 GiB), 16 (5.20 GiB, too much)".
std::string text_of(const LargestBatch& found);

/// {"largest_batch": 8, "batches": [{"batch": 8, "fits": true, "predicted_bytes": 9}, ...]}.
nlohmann::ordered_json to_json(const LargestBatch& found);

}  // namespace tidepool
