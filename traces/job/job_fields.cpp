#include "traces/job/job_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "traces/base/lines.hpp"
#include "traces/base/nearest.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

/// Largest accepted number: sums of a few of them still fit 64 bits.
constexpr std::int64_t kMost = std::int64_t{1} << 60;

std::string shown(const JobFields::Json& value) {
  return excerpt(value.dump(-1, ' ', true, JobFields::Json::error_handler_t::replace));
}

}  // namespace

JobFields::JobFields(const Json& object, std::string file, std::string where, const std::vector<std::string>& known)
    : object_{object}, file_{std::move(file)}, where_{std::move(where)} {
  const std::string place = where_.empty() ? file_ : fmt::format("{}: {}", file_, where_);
  if (!object_.is_object())
    tidepool::refuse("{}: {}; expected an object with {}", place, shown(object_), fmt::join(known, ", "));
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest(key, known);
    tidepool::refuse("{}: unknown key '{}'{}; known: {}", place, excerpt(key),
                     near.empty() ? "" : fmt::format(", did you mean '{}'?", near), fmt::join(known, ", "));
  }
}

std::string JobFields::path(const std::string& key) const {
  return where_.empty() ? key : fmt::format("{}.{}", where_, key);
}

void JobFields::refuse(const std::string& key, const std::string& message) const {
  tidepool::refuse("{}: {}: {}", file_, path(key), message);
}

const JobFields::Json& JobFields::at(const std::string& key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) refuse(key, "missing; expected a value");
  return *found;
}

std::string JobFields::text(const std::string& key) const {
  const Json& value = at(key);
  if (!value.is_string()) refuse(key, fmt::format("{}; expected a text", shown(value)));
  return value.get<std::string>();
}

std::int64_t JobFields::whole(const std::string& key) const {
  const Json& value = at(key);
  if (!value.is_number_integer() || value < 0 || value > kMost)
    refuse(key, fmt::format("{}; expected a whole number from 0 to 2^60", shown(value)));
  return value.get<std::int64_t>();
}

std::vector<std::size_t> JobFields::indices(const std::string& key, std::size_t count) const {
  const Json& list = at(key);
  if (!list.is_array()) refuse(key, fmt::format("{}; expected a list of whole numbers", shown(list)));
  std::vector<std::size_t> numbers;
  for (const Json& value : list) {
    const std::string element = fmt::format("{}[{}]", key, numbers.size());
    if (count == 0) refuse(element, fmt::format("{}; there is nothing to name", shown(value)));
    if (!value.is_number_integer() || value < 0 || value >= count)
      refuse(element, fmt::format("{}; expected 0 to {}", shown(value), count - 1));
    numbers.push_back(value.get<std::size_t>());
  }
  return numbers;
}

std::vector<JobFields> JobFields::objects(const std::string& key, const std::vector<std::string>& known) const {
  const Json& list = at(key);
  if (!list.is_array()) refuse(key, fmt::format("{}; expected a list of objects", shown(list)));
  std::vector<JobFields> found;
  for (const Json& value : list)
    found.emplace_back(value, file_, fmt::format("{}[{}]", path(key), found.size()), known);
  return found;
}

}  // namespace tidepool
