#include "traces/import/json_walk.hpp"

#include <array>
#include <cstring>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

enum Class : std::uint8_t { kOther, kQuote, kOpen, kClose };

constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  classes['"'] = kQuote;
  classes['{'] = classes['['] = kOpen;
  classes['}'] = classes[']'] = kClose;
  return classes;
}();

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

void JsonWalk::ends_early() const {
  refuse("{}:byte {}: the JSON ends early; expected a complete file", file_, text_.size());
}

char JsonWalk::peek() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  if (at_ == text_.size()) ends_early();
  return text_[at_];
}

void JsonWalk::take(char expected) {
  const char found = peek();
  if (found != expected) refuse("{}:byte {}: '{}'; expected '{}'", file_, at_, excerpt({&found, 1}), expected);
  ++at_;
}

void JsonWalk::skip_string() {
  const std::size_t first = ++at_;
  for (;; ++at_) {
    const void* const quote = std::memchr(text_.data() + at_, '"', text_.size() - at_);
    if (quote == nullptr) ends_early();
    at_ = static_cast<std::size_t>(static_cast<const char*>(quote) - text_.data());
    std::size_t backslashes = 0;
    while (at_ - backslashes > first && text_[at_ - backslashes - 1] == '\\') ++backslashes;
    if (backslashes % 2 == 0) break;
  }
  ++at_;
}

std::string_view JsonWalk::skip() {
  const char head = peek();
  const std::size_t first = at_;
  if (head == '"') {
    skip_string();
  } else if (head == '{' || head == '[') {
    std::size_t depth = 0;
    do {
      std::uint8_t what = kOther;
      while (at_ < text_.size() && (what = kClasses[static_cast<unsigned char>(text_[at_])]) == kOther) ++at_;
      if (at_ == text_.size()) ends_early();
      if (what == kQuote) {
        skip_string();
        continue;
      }
      depth = what == kOpen ? depth + 1 : depth - 1;
      ++at_;
    } while (depth > 0);
  } else {
    const auto ends = [](char c) { return c == ',' || c == ']' || c == '}' || is_blank(c); };
    while (at_ < text_.size() && !ends(text_[at_])) ++at_;
  }
  return text_.substr(first, at_ - first);
}

bool JsonWalk::next_member() {
  if (state_ == State::kBegin)
    take('{');
  else if (peek() != '}')
    take(',');
  if (peek() == '}') {
    const std::size_t more = text_.find_first_not_of(" \n\r\t", at_ + 1);
    if (more != std::string_view::npos)
      refuse("{}:byte {}: '{}' behind the end of the object; expected one object in a file", file_, more,
             excerpt(text_.substr(more, 1)));
    return false;
  }
  const std::size_t first = at_;
  take('"');
  --at_;
  skip_string();
  key_ = text_.substr(first + 1, at_ - first - 2);
  take(':');
  peek();
  state_ = State::kMembers;
  return true;
}

bool JsonWalk::next_element() {
  if (state_ == State::kMembers)
    take('[');
  else if (peek() != ']')
    take(',');
  if (peek() == ']') {
    ++at_;
    state_ = State::kMembers;
    return false;
  }
  state_ = State::kElements;
  element_ = skip();
  return true;
}

}  // namespace tidepool
