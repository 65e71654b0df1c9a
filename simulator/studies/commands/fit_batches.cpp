#include "simulator/studies/commands/fit_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tidepool {

std::vector<std::string> with_batch(std::vector<std::string> command, std::int64_t batch) {
  for (std::string& word : command)
    for (std::size_t at = word.find(kBatch); at != std::string::npos; at = word.find(kBatch))
      word.replace(at, std::string_view{kBatch}.size(), std::to_string(batch));
  return command;
}

std::string ended_text(const LargestBatch& found) {
  return fmt::format(
      "{}; {}", found.ended,
      found.batch ? fmt::format("{} is the largest that was seen to fit", *found.batch) : "none was seen to fit");
}

std::string text_of(const LargestBatch& found) {
  if (!found.ended.empty()) return ended_text(found) + "\n";
  if (!found.batch) return "batch       none fits, not even 1\n";
  std::string text = fmt::format("batch       {} is the largest that fits; recorded:", *found.batch);
  std::vector<BatchTrial> trials = found.trials;
  std::sort(trials.begin(), trials.end(), [](const BatchTrial& a, const BatchTrial& b) { return a.batch < b.batch; });
  for (const BatchTrial& trial : trials)
    text += fmt::format("{} {} ({:.2f} GiB{})", &trial == &trials.front() ? "" : ",", trial.batch,
                        static_cast<double>(trial.predicted.count()) / (1 << 30), trial.fits ? "" : ", too much");
  return text + "\n";
}

nlohmann::ordered_json to_json(const LargestBatch& found) {
  using Json = nlohmann::ordered_json;
  Json object{{"largest_batch", found.batch ? Json(*found.batch) : Json(nullptr)}};
  for (const BatchTrial& trial : found.trials) {
    const bool known = trial.failed.empty();
    object["batches"].push_back({{"batch", trial.batch},
                                 {"fits", known ? Json(trial.fits) : Json(nullptr)},
                                 {"predicted_bytes", known ? Json(trial.predicted.count()) : Json(nullptr)}});
  }
  return object;
}

}  // namespace tidepool
