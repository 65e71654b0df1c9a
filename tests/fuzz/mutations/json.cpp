#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tests/fuzz/mutations/mutations.hpp"

namespace tidepool::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostValues = 10'000;  // only the first values of a file, up to this number, are mutated

void collect(Json& value, std::vector<Json*>& all) {
  if (all.size() == kMostValues) return;
  all.push_back(&value);
  if (value.is_structured())
    for (Json& inner : value) collect(inner, all);
}

Json other_value(const Json& value, Random& random) {
  if (value.is_number_integer() && random() % 2 == 0)
    return value.get<std::int64_t>() / 2 + 1 - static_cast<std::int64_t>(random() % 3);
  static const std::array<Json, 14> kValues{
      Json(0),  Json(-1),   Json(1),     Json(INT64_MAX), Json(INT64_MIN), Json(UINT64_MAX),     Json(1e308),
      Json(""), Json("0x"), Json(false), Json(),          Json::array(),   Json(Json::object()), Json("alloc")};
  return kValues[random() % kValues.size()];
}

Json mutated(Json whole, Random& random) {
  std::vector<Json*> all;
  collect(whole, all);
  Json& value = *all[random() % all.size()];
  Json& other = *all[random() % all.size()];
  switch (value.is_structured() && !value.empty() ? random() % 4 : 3 + random() % 2) {
    case 0:
      value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(random() % value.size())));
      break;
    case 1:
      if (value.is_array()) value.push_back(Json(value[random() % value.size()]));
      break;
    case 2: {
      const auto place = [&] { return std::next(value.begin(), static_cast<std::ptrdiff_t>(random() % value.size())); };
      const auto one = place(), two = place();
      if (one != two) std::swap(*one, *two);
      break;
    }
    case 3:
      value = other_value(value, random);
      break;
    default: {
      const Json copy = other;
      value = copy;
    }
  }
  return whole;
}

std::string text_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string mutate_json(std::string_view text, Random& random) {
  Json whole = Json::parse(text, nullptr, false);
  if (!whole.is_discarded()) return text_of(mutated(std::move(whole), random));
  std::vector<std::string> lines(1);
  for (const char c : text) c == '\n' ? void(lines.emplace_back()) : lines.back().push_back(c);
  const std::size_t at = random() % lines.size();
  Json line = Json::parse(lines[at], nullptr, false);
  switch (random() % 6) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(random() % lines.size()), std::string{lines[at]});
      break;
    case 2:
      std::swap(lines[at], lines[random() % lines.size()]);
      break;
    default:
      if (!line.is_discarded()) lines[at] = text_of(mutated(std::move(line), random));
  }
  std::string joined;
  for (std::size_t i = 0; i < lines.size(); ++i) joined += (i == 0 ? "" : "\n") + lines[i];
  return joined;
}

}  // namespace tidepool::fuzz
