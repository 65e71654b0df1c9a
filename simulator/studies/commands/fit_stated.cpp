#include "simulator/studies/commands/fit_stated.hpp"

#include <fmt/format.h>

namespace tidepool {

std::string allocator_text(const Fit& fit) {
  if (fit.other.pool.empty()) return "other settings are not tried, since the step has too many buffers";
  if (!fit.compared) return "nothing is known of other settings: a replay does not give what this job reserves";
  const bool to_expandable = fit.other.pool == "pytorch-expandable";
  const std::string setting =
      fmt::format("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:{}", to_expandable ? "True" : "False");
  const Bytes saved = fit.allocator.needs - fit.other.needs;
  const std::string instead =
      fmt::format("at least {} instead of {}", to_text(fit.other.needs), to_text(fit.allocator.needs));
  if (fit.other.fits && !fit.fits) return fmt::format("{} makes it fit: it needs {}", setting, instead);
  if (!fit.other.fits && fit.fits) return fmt::format("{} does not fit: it needs {}", setting, instead);
  if (saved <= Bytes{}) return fmt::format("{} {} no less", setting, fit.fits ? "reserves" : "needs");
  if (fit.fits && fit.reserved == fit.allocator.needs)
    return fmt::format("{} reserves {} less: {}", setting, to_text(saved), to_text(fit.other.needs));
  if (fit.fits)
    return fmt::format("{} would reserve {} less, by a model that begins without a cache: {} instead of {}", setting,
                       to_text(saved), to_text(fit.other.needs), to_text(fit.allocator.needs));
  return fmt::format("{} needs {}, which does not make it fit", setting, instead);
}

std::string stated_text(const Trace& trace, const Fit& fit) {
  const StatedMemory& stated = fit.stated;
  std::string text = fmt::format("            {}\n", fit.source);
  if (!stated.settings.empty()) text += fmt::format("            settings in force: {}\n", stated.settings);
  if (stated.fraction < 1)
    text += fmt::format("            the job may reserve {:.4g} of the device's memory\n", stated.fraction);
  if (stated.failed_requests > 0)
    text += fmt::format("            {} of its requests failed; the largest: {} beside {}\n", stated.failed_requests,
                        to_text(stated.failed_request), to_text(stated.failed_allocated));
  if (const std::string outside = outside_text(trace); !outside.empty())
    text += fmt::format("            {}\n", outside);
  if (fit.worst)
    text += fmt::format("            sizes are assumed; if nearly all choose the same, {} are predicted\n",
                        to_text(*fit.worst));
  if (stated.pinned > Bytes{}) text += fmt::format("host        {} pinned at most\n", to_text(stated.pinned));
  return text;
}

void add_stated(nlohmann::ordered_json& object, const Fit& fit) {
  const StatedMemory& stated = fit.stated;
  object["reserved_from"] = fit.source;
  if (stated.reserved > Bytes{}) object["reserved_peak_bytes"] = stated.reserved.count();
  if (stated.allocated > Bytes{}) object["allocated_peak_bytes"] = stated.allocated.count();
  if (stated.pinned > Bytes{}) object["pinned_peak_bytes"] = stated.pinned.count();
  object["settings"] = stated.settings;
  object["failed_requests"] = stated.failed_requests;
  object["sizes_from"] = stated.assumed.empty() ? "recorded" : "assumed";
  if (fit.worst) object["worst_routing_bytes"] = fit.worst->count();
}

std::vector<std::string> stated_notes(const Fit& fit) {
  std::vector<std::string> notes = fit.stated.assumed;
  if (fit.untried)
    notes.push_back(fmt::format(
        "the job reserved {}; with less, its allocator gives back what it caches, and this recording does not show "
        "whether that is enough: `tidepool record --dry --device {} --capacity {}B` tells",
        to_text(fit.stated.reserved), fit.device->name, fit.untried->count()));
  if (fit.unknown_beyond)
    notes.push_back(fmt::format(
        "the job ran out of memory{}; what it would need beyond is not known",
        fit.stated.device_total > Bytes{} ? " on a device with " + to_text(fit.stated.device_total) : std::string{}));
  return notes;
}

}  // namespace tidepool
