#include "traces/redact.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tidepool {
namespace {

bool is_separator(char c) { return c == '/' || c == '\\'; }

bool in_path(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || is_separator(c) || c == '.' || c == '_' || c == '-' ||
         c == '~' || c == '+' || c == '@' || c == '%' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// The end of the word that begins at `begin`, with the drive of a path of Windows.
std::size_t word_end(std::string_view text, std::size_t begin) {
  const bool drive = begin + 2 < text.size() && is_letter(text[begin]) && text[begin + 1] == ':' &&
                     is_separator(text[begin + 2]) && (begin == 0 || !in_path(text[begin - 1]));
  std::size_t end = drive ? begin + 2 : begin;
  while (end < text.size() && in_path(text[end])) ++end;
  return end;
}

/// Whether a word that begins with "-" or "+" is an option with a path behind its letters: "-I/a", "-L~/a", "-o/a/b",
/// "--with/a". Other such words are terms of expressions: "-a/b", "-1/2".
bool is_option_with_path(std::string_view word) {
  const std::string_view text = word.substr(std::min(word.find_first_not_of("-+"), word.size()));
  const std::size_t letters = std::min(text.find_first_of("/\\~."), text.size());
  const std::string_view path = text.substr(letters);
  if (path.size() < 2 || (letters > 0 && !is_letter(text[0]))) return false;
  if (path[0] == '~') return letters > 0 || is_separator(path[1]);
  if (path.starts_with("../") || path.starts_with("..\\")) return true;
  if (!is_separator(path[0]) && !is_separator(path[1])) return false;  // "-x.grad/n"
  const bool upper = letters == 1 && std::isupper(static_cast<unsigned char>(text[0])) != 0;
  return letters == 0 || upper || word.starts_with("--") || std::count_if(path.begin(), path.end(), is_separator) > 1;
}

/// Whether a word begins a path from a root, from the folder of a user or from the current folder, perhaps behind the
/// letters of an option or the "@" of a file of arguments: "/a/b", "C:\\a", "~ada/a", "../a", "-I/a", "@/a".
bool is_rooted(std::string_view word) {
  constexpr std::string_view kSeparators = "/\\";
  if (word.find_first_of(kSeparators) == std::string_view::npos ||
      word.find_first_not_of(kSeparators) == std::string_view::npos)
    return false;
  const bool drive = word[1] == ':', digit = std::isdigit(static_cast<unsigned char>(word[1])) != 0;
  if (word[0] == '-' || word[0] == '+') return is_option_with_path(word);
  return drive || is_separator(word[0]) || word[0] == '~' || (!digit && (word[0] == '.' || word[0] == '@'));
}

std::string_view last_part(std::string_view path) { return path.substr(path.find_last_of("/\\") + 1); }

/// Whether a name ends as files of programs do: "model.py", "libx.so.2". The name of a user does not: "ada.lovelace".
bool names_program_file(std::string_view name) {
  constexpr std::array<std::string_view, 19> kExtensions{"py",  "pyc",   "pyx", "ipynb", "so",  "cu",  "cuh",
                                                         "ptx", "cubin", "c",   "cc",    "cpp", "cxx", "h",
                                                         "hh",  "hpp",   "inl", "js",    "json"};
  if (name.find(".so.", 1) != std::string_view::npos) return true;
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot > 0 &&
         std::find(kExtensions.begin(), kExtensions.end(), name.substr(dot + 1)) != kExtensions.end();
}

/// Whether the last part of a path is the folder of a user: "/home/ada", "C:\\Users\\ada".
bool ends_at_home(std::string_view path) {
  if (names_program_file(last_part(path))) return false;
  path.remove_suffix(last_part(path).size());
  const std::size_t end = path.find_last_not_of("/\\") + 1;  // 0 if nothing is before the last part
  std::string parent{last_part(path.substr(0, end))};
  for (char& c : parent) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array<std::string_view, 7> kHomes{
      "home", "homes", "users", "user", "u", "scratch", "documents and settings"};
  return std::find(kHomes.begin(), kHomes.end(), parent) != kHomes.end();
}

bool has_extension(std::string_view name) { return name.find('.', 1) != std::string_view::npos; }

/// Whether a path is the part of an address behind "https:": "//host/a". Addresses of files can hold blanks.
bool is_address(std::string_view text, std::size_t begin) {
  return begin > 1 && text[begin - 1] == ':' && is_letter(text[begin - 2]) && text.substr(begin).starts_with("//") &&
         !text.substr(begin).starts_with("///") && !text.substr(0, begin).ends_with("file:");
}

/// Whether a text between two words ends the path before it: "/tmp/x: model/Add", "/tmp/x (model/Add".
bool ends_path(std::string_view between) {
  const std::size_t opened = between.rfind('('), closed = between.rfind(')');
  return between.find_first_of(":,;=|<>[]{}\"") != std::string_view::npos ||
         (opened != std::string_view::npos && (closed == std::string_view::npos || closed < opened));
}

/// The end of a rooted path, whose first word ends at `end`. Names of folders may hold blanks and other characters. So
/// a path in quotes goes on to the closing one. Any other path goes on, until it has reached a file with an extension,
/// if a separator that does not begin another path follows soon, with no colon, comma or bracket before it. An address
/// has no blanks.
std::size_t path_end(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::size_t kSoon = 40;
  if (is_address(text, begin)) return std::min(text.find_first_of(" \t\r\n\"'`<>()[]{}|,;", end), text.size());
  if (const char quote = begin > 0 ? text[begin - 1] : ' '; quote == '"' || quote == '\'' || quote == '`') {
    const std::size_t close = text.find_first_of(std::string{quote, '\n'}, end);
    if (close != std::string_view::npos && text[close] == quote) return close;
  }
  while (true) {
    const std::string_view path = text.substr(begin, end - begin);
    if (has_extension(last_part(path)) && !ends_at_home(path)) return end;
    const std::size_t next = text.substr(end, kSoon).find_first_of("/\\\n");
    if (next == std::string_view::npos || text[end + next] == '\n' || ends_path(text.substr(end, next))) return end;
    std::size_t word = end + next;
    while (word > end && in_path(text[word - 1])) --word;
    const bool own = word == end + next
                         ? std::string_view{" \t\"'`=:,;([{<|"}.find(text[word - 1]) != std::string_view::npos
                         : std::string_view{"-+"}.find(text[word]) != std::string_view::npos ||
                               is_rooted(text.substr(word, word_end(text, word) - word));
    if (own) return end;
    end = word_end(text, end + next);
  }
}

/// Whether a word is a relative path of a file with an extension. Other words with slashes are kept, such as names of
/// operators ("model/dense/MatMul").
bool is_file(std::string_view word) {
  const std::string_view name = last_part(word);
  return name.size() < word.size() && has_extension(name);
}

/// Whether the word "~name" in [begin, end) is a user, not a term of an expression ("~mask & x", "f(~mask)") or a
/// destructor ("A::~A()").
bool is_user(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::string_view kBlanks = " \t", kOperators = "()[]&|^*=<>";
  if (!is_letter(text[begin + 1]) || text.substr(begin, end - begin).find_first_of("+%@") != std::string_view::npos)
    return false;
  const std::string_view before = text.substr(0, begin), after = text.substr(end);
  if (!before.empty() && std::string_view{" \t\n=:\"'`"}.find(before.back()) == std::string_view::npos) return false;
  if (before.ends_with("::") || after.starts_with("!=")) return false;
  if (!after.empty() && kOperators.find(after[0]) != std::string_view::npos) return false;
  const std::string_view next = after.substr(std::min(after.find_first_not_of(kBlanks), after.size()));
  if (next.starts_with("==") || next.starts_with("!=")) return false;
  const auto operates = [](char c) { return std::string_view{"&|^"}.find(c) != std::string_view::npos; };
  const std::size_t last = before.find_last_not_of(kBlanks);
  if (last != std::string_view::npos && operates(before[last]) && (last == 0 || !operates(before[last - 1])))
    return false;
  return next.size() < 3 || !operates(next[0]) || kBlanks.find(next[1]) == std::string_view::npos;  // "&&" of a shell
}

/// Whether the word in [begin, end) is a user: a mail address, "name@host.org", "name@host:/a" or "~name".
bool names_somebody(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view word = text.substr(begin, end - begin);
  if (word.size() > 1 && word[0] == '~' && is_user(text, begin, end)) return true;
  const auto next = [&](std::size_t i) { return end + i < text.size() ? text[end + i] : ' '; };
  const std::size_t at = word.find('@');
  if (at == std::string_view::npos || at == 0) return false;
  return word.find('.', at) != std::string_view::npos || (next(0) == ':' && (is_separator(next(1)) || next(1) == '~'));
}

}  // namespace

std::string redacted(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = word_end(text, i);
    if (end == i) {
      out += text[i++];
      continue;
    }
    const std::string_view word = text.substr(i, end - i);
    if (is_rooted(word)) {
      end = path_end(text, i, end);
      const std::string_view path = text.substr(i, end - i);
      const std::string_view name = last_part(path);
      const bool login = path.starts_with("//") && name.find('@') != std::string_view::npos;  // "ssh://ada@box"
      out += !name.empty() && (login || ends_at_home(path)) ? "..." : name;
    } else if (is_file(word)) {
      out += last_part(word);
    } else if (names_somebody(text, i, end)) {
      out += "...";
    } else {
      out += word;
    }
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
