#include "simulator/advise/advice_json.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace tidepool {

nlohmann::ordered_json to_json(const Advice& advice) {
  using Json = nlohmann::ordered_json;
  Json object{{"base_peak_bytes", advice.base_peak.count()},
              {"base_allocated_bytes", advice.base_allocated.count()},
              {"changes", Json::array()}};
  for (const Change& change : advice.changes) {
    Json one{{"kind", change.kind}, {"modules", change.modules},         {"code", change.code},
             {"fits", change.fits}, {"peak_bytes", change.peak.count()}, {"overhead_ratio", change.overhead_ratio}};
    if (change.peak_is_least) one["peak_is_least"] = true;
    if (change.allocated) one["allocated_bytes"] = change.allocated->count();
    if (!change.operators.empty()) one["operators"] = change.operators;
    if (change.parts > 0) one["parts"] = change.parts;
    if (change.copied > Bytes{}) one["copied_bytes"] = change.copied.count();
    if (change.reserved) one["reserved_bytes"] = change.reserved->count();
    one["bound_ns"] = change.bound ? Json(change.bound->count()) : Json(nullptr);
    one["gap"] = change.gap ? Json(*change.gap) : Json(nullptr);
    object["changes"].push_back(std::move(one));
  }
  if (advice.reserved) object["reserved_bytes"] = advice.reserved->count();
  object["notes"] = advice.notes;
  return object;
}

}  // namespace tidepool
