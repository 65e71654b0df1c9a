// A large JSON file one piece at a time: the members of its top-level object, and the elements of a member that is
// an array. Only brackets and strings are examined here. The caller parses each piece, so that no more than one piece
// needs memory besides the file itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/base/input.hpp"

namespace tidepool {

class JsonWalk {
 public:
  /// @param input  outlives the walk and the texts that it returns
  explicit JsonWalk(const Input& input) : file_{input.path()}, text_{input.bytes()} {}

  /// Steps to the next member of the top-level object; the caller then takes its value, by value() or by calls of
  /// next_element() until one returns false. @return  whether there is such a member
  /// @throws InputError  "t.json:byte 812: the JSON ends early; expected a complete file",
  ///                     "t.json:byte 0: '['; expected '{'"
  ///                     "t.json:byte 812: '{' behind the end of the object; expected one object in a file"
  bool next_member();
  /// The member's name as it is written, with escapes.
  std::string_view key() const { return key_; }
  bool is_array() const { return text_[at_] == '['; }
  /// The member's value as text.
  std::string_view value() { return skip(); }

  /// Steps to the next element of the member's value, which is an array. @return  whether there is one
  bool next_element();
  std::string_view element() const { return element_; }

 private:
  char peek();
  /// Skips blanks and `expected`.
  void take(char expected);
  void skip_string();
  /// Skips a value and returns it.
  std::string_view skip();
  [[noreturn]] void ends_early() const;

  enum class State : std::uint8_t { kBegin, kMembers, kElements };

  std::string file_;
  std::string_view text_;
  std::size_t at_ = 0;
  State state_ = State::kBegin;
  std::string_view key_, element_;
};

}  // namespace tidepool
