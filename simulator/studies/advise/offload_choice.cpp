#include "simulator/studies/advise/offload_choice.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "simulator/studies/advise/step_uses.hpp"
#include "traces/step/module_calls.hpp"

namespace tidepool {

OffloadSearch::OffloadSearch(const Trace& trace, const Machine& machine, Bytes least)
    : trace_{trace}, machine_{machine}, uses_{trace}, saved_{saved_tensors(trace, uses_, least)} {
  std::set<std::string_view> saving;
  for (const SavedTensor& each : saved_) saving.insert(each.module);
  std::map<std::string, std::size_t> first;  // position of the first call of each module
  for (const ModuleCall& call : module_calls(trace))
    if (std::any_of(saving.begin(), saving.end(), [&](std::string_view path) { return lies_in(path, call.module); }))
      first.emplace(call.module, call.first);
  for (const auto& [path, position] : first) modules_.push_back(path);
  std::stable_sort(modules_.begin(), modules_.end(),
                   [&](const std::string& a, const std::string& b) { return first.at(a) < first.at(b); });
}

OffloadChoice OffloadSearch::evaluate(std::vector<std::size_t> modules) const {
  OffloadChoice choice;
  for (const std::size_t i : modules) choice.modules.push_back(modules_[i]);
  std::copy_if(saved_.begin(), saved_.end(), std::back_inserter(choice.saved), [&](const SavedTensor& each) {
    return std::any_of(choice.modules.begin(), choice.modules.end(),
                       [&](const std::string& module) { return lies_in(each.module, module); });
  });
  const OffloadedStep changed = step(choice);
  choice.peak = changed.peak();
  choice.copies = changed.copy_time(machine_);
  return choice;
}

std::vector<OffloadChoice> OffloadSearch::choices(Bytes capacity) const {
  const auto rank = [&](const OffloadChoice& choice) {
    return std::tuple{std::max(choice.peak - capacity, Bytes{}), choice.copies, choice.modules.size(), choice.peak};
  };
  std::vector<OffloadChoice> found;
  for (const std::vector<std::size_t>& family : module_families(modules_)) {
    std::size_t fewest = 1, most = family.size();
    const auto first = [&](std::size_t count) {
      return evaluate({family.begin(), family.begin() + static_cast<std::ptrdiff_t>(count)});
    };
    while (fewest < most) {
      const std::size_t half = (fewest + most) / 2;
      if (first(half).peak <= capacity)
        most = half;
      else
        fewest = half + 1;
    }
    OffloadChoice choice = first(most);
    if (choice.peak >= trace_.ideal_peak()) continue;
    if (std::none_of(found.begin(), found.end(),
                     [&](const auto& other) { return other.peak == choice.peak && other.copies == choice.copies; }))
      found.push_back(std::move(choice));
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](const OffloadChoice& a, const OffloadChoice& b) { return rank(a) < rank(b); });
  const auto over = std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.peak > capacity; });
  found.erase(over == found.begin() && !found.empty() ? over + 1 : over, found.end());
  return found;
}

}  // namespace tidepool
