#include "simulator/studies/sweep/result_json.hpp"

#include <nlohmann/json.hpp>

#include "traces/base/json_text.hpp"

namespace tidepool {

nlohmann::ordered_json to_json_value(const Value& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

nlohmann::ordered_json to_json_object(const Row& row) {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (std::holds_alternative<std::monostate>(row[i])) continue;
    const std::string name{result_columns()[i].name};
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos)
      object[name] = to_json_value(row[i]);
    else
      object[name.substr(0, dot)][name.substr(dot + 1)] = to_json_value(row[i]);
  }
  return object;
}

std::string to_json(const Row& row) { return json_text(to_json_object(row)); }

}  // namespace tidepool
