// Pickles (protocol 4) of dictionaries, lists, numbers and texts, which Python's pickle.load reads without running
// code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tidepool {

/// Writes one value; containers are begun, filled and ended.
class PickleWriter {
 public:
  PickleWriter();
  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }
  void begin_list() { out_ += "]("; }
  void end_list() { out_ += 'e'; }
  void whole(std::int64_t value);
  void flag(bool value) { out_ += value ? '\x88' : '\x89'; }
  /// Writes a text; of equal texts, all but the first are references to the first.
  void text(std::string_view value);
  /// Writes a tuple of two numbers.
  void pair(std::int64_t first, std::int64_t second);

  void entry(std::string_view key, std::int64_t value) { text(key), whole(value); }
  void entry(std::string_view key, std::string_view value) { text(key), text(value); }
  void entry(std::string_view key, const char* value) { text(key), text(value); }
  void entry(std::string_view key, bool value) { text(key), flag(value); }

  /// The file; the writer is empty afterwards.
  std::string finish();

 private:
  void little_endian(std::uint64_t value, int bytes);

  std::string out_;
  std::unordered_map<std::string, std::uint32_t> memo_;
};

}  // namespace tidepool
