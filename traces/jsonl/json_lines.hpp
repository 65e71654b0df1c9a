// Files of one JSON object per line, read by key and type; unknown keys are refused.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/names.hpp"

namespace simdjson::dom {
class array;
class element;
class object;
}  // namespace simdjson::dom

namespace tidepool {

class JsonRow;

/// Reads the fields of one JSON object by key. A missing field gives the default; done() refuses keys that were not
/// read. Every error is an InputError that names the key and its value, as in "'device' is -1; expected 0 to 65535".
class JsonFields {
 public:
  /// `object` must stay alive.
  explicit JsonFields(const simdjson::dom::object& object) : object_{object} {}

  bool has(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t least = 0,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());
  /// The same for a required field.
  std::int64_t required_integer(std::string_view key, std::int64_t least = 0,
                                std::int64_t most = std::numeric_limits<std::int64_t>::max());
  bool flag(std::string_view key, bool fallback);
  std::string_view text(std::string_view key, std::string_view fallback);
  template <class Enum>
  Enum word(std::string_view key, Enum fallback) {
    return static_cast<Enum>(word_index(key, static_cast<std::size_t>(fallback), words<Enum>()));
  }
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least, std::int64_t most);
  std::vector<std::string> texts(std::string_view key);
  /// Calls `visit` with every element of an array of arrays.
  void each_row(std::string_view key, const std::function<void(const JsonRow&)>& visit);
  /// Calls `visit` with every key and text of an object of texts.
  void each_text(std::string_view key, const std::function<void(std::string_view, std::string_view)>& visit);
  /// Calls `visit` with the fields of an object, and refuses keys that it did not read.
  void nested(std::string_view key, const std::function<void(JsonFields&)>& visit);

  /// @throws InputError  "unknown key 'sise_bytes'; expected alloc, size_bytes, ...", "key 'alloc' is given twice"
  void done() const;

 private:
  std::size_t word_index(std::string_view key, std::size_t fallback, std::span<const std::string_view> words);
  bool find(std::string_view key, simdjson::dom::element& found);

  const simdjson::dom::object& object_;
  std::vector<std::string_view> asked_;
};

/// One row of an array of arrays, as in ["read", 7]; places count from 0, and must be below size().
class JsonRow {
 public:
  JsonRow(const simdjson::dom::array& array, std::string_view key) : array_{array}, key_{key} {}

  std::size_t size() const;
  std::int64_t integer(std::size_t place, std::int64_t least, std::int64_t most) const;
  template <class Enum>
  Enum word(std::size_t place) const {
    return static_cast<Enum>(word_index(place, words<Enum>()));
  }

 private:
  std::size_t word_index(std::size_t place, std::span<const std::string_view> words) const;

  const simdjson::dom::array& array_;
  std::string_view key_;
};

/// Calls `visit` for every line that is not blank.
/// @throws InputError  what `visit` throws, with "path:line" in front
/// @throws InputError  "x.jsonl:3: not JSON (...); expected one object on the line"
void for_each_json_line(const Input& input, const std::function<void(JsonFields&)>& visit);

}  // namespace tidepool
