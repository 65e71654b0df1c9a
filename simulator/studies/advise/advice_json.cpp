#include "simulator/studies/advise/advice_json.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace tidepool {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Change& change) {
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
  return one;
}

std::optional<std::int64_t> whole_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return found->get<std::int64_t>();
}

}  // namespace

std::string text_of(const std::vector<Change>& changes) {
  Json list = Json::array();
  for (const Change& change : changes) list.push_back(to_json(change));
  return list.dump();
}

std::vector<Change> changes_of(const std::string& text) {
  std::vector<Change> changes;
  for (const Json& one : Json::parse(text)) {
    Change change{.kind = one["kind"], .modules = one["modules"], .code = one["code"], .peak = {}};
    change.fits = one["fits"];
    change.peak = Bytes{one["peak_bytes"].get<std::int64_t>()};
    change.overhead_ratio = one["overhead_ratio"];
    change.peak_is_least = one.contains("peak_is_least");
    if (one.contains("operators")) change.operators = one["operators"];
    if (const auto bytes = whole_at(one, "allocated_bytes")) change.allocated = Bytes{*bytes};
    if (const auto parts = whole_at(one, "parts")) change.parts = static_cast<int>(*parts);
    if (const auto bytes = whole_at(one, "copied_bytes")) change.copied = Bytes{*bytes};
    if (const auto bytes = whole_at(one, "reserved_bytes")) change.reserved = Bytes{*bytes};
    if (const auto time = whole_at(one, "bound_ns")) change.bound = Nanos{*time};
    if (!one["gap"].is_null()) change.gap = one["gap"].get<double>();
    changes.push_back(std::move(change));
  }
  return changes;
}

nlohmann::ordered_json to_json(const Advice& advice) {
  Json object{{"base_peak_bytes", advice.base_peak.count()},
              {"base_allocated_bytes", advice.base_allocated.count()},
              {"changes", Json::array()}};
  for (const Change& change : advice.changes) object["changes"].push_back(to_json(change));
  if (advice.reserved) object["reserved_bytes"] = advice.reserved->count();
  object["notes"] = advice.notes;
  return object;
}

}  // namespace tidepool
