#include "traces/redact.hpp"

#include <cctype>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tidepool {
namespace {

bool is_separator(char c) { return c == '/' || c == '\\'; }

bool in_path(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || is_separator(c) || c == '.' || c == '_' || c == '-' ||
         c == '~' || c == '+' || c == '@' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// Whether a word is an absolute path ("/a/b", "~/a", "C:\\a"), or a relative path of a file with an extension. Other
/// words with slashes are kept, such as names of operators ("model/dense/MatMul").
bool leads_somewhere(std::string_view word) {
  const std::size_t last = word.find_last_of("/\\");
  if (last == std::string_view::npos || word.size() == 1) return false;
  const bool drive = word.size() > 2 && is_letter(word[0]) && word[1] == ':' && is_separator(word[2]);
  const bool file = word.find('.', last + 2) != std::string_view::npos;
  return drive || is_separator(word[0]) || word[0] == '~' || file;
}

/// Whether a word is a mail address or a user on a host: "name@host.org".
bool names_somebody(std::string_view word) {
  const std::size_t at = word.find('@');
  return at != std::string_view::npos && at > 0 && word.find('.', at) != std::string_view::npos;
}

}  // namespace

std::string redacted(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool drive = i + 2 < text.size() && is_letter(text[i]) && text[i + 1] == ':' && is_separator(text[i + 2]) &&
                       (i == 0 || !in_path(text[i - 1]));
    std::size_t end = drive ? i + 2 : i;
    while (end < text.size() && in_path(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    if (word.empty()) {
      out += text[i++];
      continue;
    }
    if (leads_somewhere(word))
      out += word.substr(word.find_last_of("/\\") + 1);
    else if (names_somebody(word))
      out += "...";
    else
      out += word;
    i = end;
  }
  return out;
}

Trace redacted(Trace trace) {
  TraceData data = trace.data();
  bool changed = std::erase_if(data.meta, [](const auto& entry) {
                   return entry.first == "command" || entry.first.starts_with("env.");
                 }) > 0;
  for (auto& [key, value] : data.meta) {
    std::string clean = redacted(value);
    changed = changed || clean != value;
    value = std::move(clean);
  }
  // Redaction can make texts equal; equal texts share one id.
  std::vector<std::string> strings;
  std::vector<StringId> id_of(data.strings.size());
  std::unordered_map<std::string, StringId> ids;
  for (std::size_t i = 0; i < data.strings.size(); ++i) {
    std::string clean = redacted(data.strings[i]);
    changed = changed || clean != data.strings[i];
    const auto [entry, added] = ids.try_emplace(clean, StringId{strings.size()});
    if (added) strings.push_back(std::move(clean));
    id_of[i] = entry->second;
  }
  if (!changed) return trace;
  data.strings = std::move(strings);
  const auto rename = [&](StringId& id) { id = id_of[id.index()]; };
  const auto rename_line = [&](StringId& id) {
    if (id.valid()) rename(id);
  };
  for (Buffer& buffer : data.buffers) rename(buffer.name), rename_line(buffer.line);
  for (Op& op : data.ops) rename(op.name), rename(op.module), rename_line(op.line);
  for (Mark& mark : data.marks) rename(mark.name);
  return Trace{std::move(data)};
}

}  // namespace tidepool
