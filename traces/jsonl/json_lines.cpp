#include "traces/jsonl/json_lines.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

/// simdjson chooses its code for this processor at its first use, in functions that end the program if memory runs out
/// there. So the first use is when the program starts.
[[maybe_unused]] const bool chosen = !simdjson::get_active_implementation()->name().empty();

constexpr auto kNoLimit = std::numeric_limits<std::int64_t>::max();

/// A value for messages: as JSON without blanks, cut to 60 bytes.
std::string shown(const element& value) {
  std::string text = simdjson::minify(value);
  constexpr std::size_t kLongest = 60;
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest - 3;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character of UTF-8
  return text.substr(0, end) + "...";
}

[[noreturn]] void refuse(std::string_view key, const element& value, const std::string& expected) {
  throw InputError{fmt::format("'{}' is {}; expected {}", key, shown(value), expected)};
}

std::int64_t to_integer(std::string_view key, const element& value, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS) refuse(key, value, "a whole number");
  if (number < least || number > most)
    refuse(key, value, most == kNoLimit ? fmt::format("at least {}", least) : fmt::format("{} to {}", least, most));
  return number;
}

std::string_view to_text(std::string_view key, const element& value) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) refuse(key, value, "a text");
  return text;
}

array to_array(std::string_view key, const element& value, const char* expected) {
  array items;
  if (value.get_array().get(items) != simdjson::SUCCESS) refuse(key, value, expected);
  return items;
}

object to_object(std::string_view key, const element& value) {
  object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS) refuse(key, value, "an object");
  return fields;
}

std::size_t to_word(std::string_view key, const element& value, std::span<const std::string_view> words) {
  const auto found = std::find(words.begin(), words.end(), to_text(key, value));
  if (found == words.end()) refuse(key, value, choices(words));
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace

bool JsonFields::find(std::string_view key, element& found) {
  asked_.push_back(key);
  return object_.at_key(key).get(found) == simdjson::SUCCESS;
}

bool JsonFields::has(std::string_view key) const {
  element found;
  return object_.at_key(key).get(found) == simdjson::SUCCESS;
}

std::int64_t JsonFields::integer(std::string_view key, std::int64_t fallback, std::int64_t least, std::int64_t most) {
  element value;
  return find(key, value) ? to_integer(key, value, least, most) : fallback;
}

std::int64_t JsonFields::required_integer(std::string_view key, std::int64_t least, std::int64_t most) {
  element value;
  if (!find(key, value)) throw InputError{fmt::format("no '{}'; it is required", key)};
  return to_integer(key, value, least, most);
}

bool JsonFields::flag(std::string_view key, bool fallback) {
  element value;
  if (!find(key, value)) return fallback;
  bool flag = false;
  if (value.get_bool().get(flag) != simdjson::SUCCESS) refuse(key, value, "true or false");
  return flag;
}

std::string_view JsonFields::text(std::string_view key, std::string_view fallback) {
  element value;
  return find(key, value) ? to_text(key, value) : fallback;
}

std::size_t JsonFields::word_index(std::string_view key, std::size_t fallback,
                                   std::span<const std::string_view> words) {
  element value;
  return find(key, value) ? to_word(key, value, words) : fallback;
}

std::vector<std::int64_t> JsonFields::integers(std::string_view key, std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> numbers;
  element value;
  if (!find(key, value)) return numbers;
  for (const element item : to_array(key, value, "an array of whole numbers"))
    numbers.push_back(to_integer(key, item, least, most));
  return numbers;
}

std::vector<std::string> JsonFields::texts(std::string_view key) {
  std::vector<std::string> texts;
  element value;
  if (!find(key, value)) return texts;
  for (const element item : to_array(key, value, "an array of texts")) texts.emplace_back(to_text(key, item));
  return texts;
}

void JsonFields::each_row(std::string_view key, const std::function<void(const JsonRow&)>& visit) {
  element value;
  if (!find(key, value)) return;
  for (const element item : to_array(key, value, "an array of arrays")) {
    const array row = to_array(key, item, "an array in it");
    visit(JsonRow{row, key});
  }
}

void JsonFields::each_text(std::string_view key, const std::function<void(std::string_view, std::string_view)>& visit) {
  element value;
  if (!find(key, value)) return;
  for (const auto& [name, text] : to_object(key, value)) visit(name, to_text(name, text));
}

void JsonFields::nested(std::string_view key, const std::function<void(JsonFields&)>& visit) {
  element value;
  if (!find(key, value)) return;
  const object fields = to_object(key, value);
  JsonFields inner{fields};
  visit(inner);
  inner.done();
}

void JsonFields::done() const {
  std::vector<std::string_view> seen;
  for (const auto& [key, value] : object_) {
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end())
      throw InputError{fmt::format("unknown key '{}'; expected {}", key, choices(asked_))};
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      throw InputError{fmt::format("key '{}' is given twice", key)};
    seen.push_back(key);
  }
}

std::size_t JsonRow::size() const { return array_.size(); }

std::int64_t JsonRow::integer(std::size_t place, std::int64_t least, std::int64_t most) const {
  return to_integer(key_, array_.at(place).value(), least, most);
}

std::size_t JsonRow::word_index(std::size_t place, std::span<const std::string_view> words) const {
  return to_word(key_, array_.at(place).value(), words);
}

void for_each_json_line(const Input& input, const std::function<void(JsonFields&)>& visit) {
  simdjson::dom::parser parser;
  std::size_t number = 0;
  for (std::string_view rest = input.bytes(); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      // Bytes behind the line are readable: the rest of the input and its padding.
      element parsed;
      object fields;
      if (const auto error = parser.parse(line.data(), line.size(), false).get(parsed))
        throw InputError{fmt::format("not JSON ({}); expected one object on the line", simdjson::error_message(error))};
      if (parsed.get_object().get(fields) != simdjson::SUCCESS)
        throw InputError{fmt::format("the line is {}; expected an object", shown(parsed))};
      JsonFields line_fields{fields};
      visit(line_fields);
      line_fields.done();
    } catch (const InputError& error) {
      throw error.at(fmt::format("{}:{}", input.path(), number));
    }
  }
}

}  // namespace tidepool
