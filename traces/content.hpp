// Recognition of job files and of files that are not text in UTF-8, by their first bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace tidepool {

/// The kind of a file that is not text in UTF-8, from `head`, its first bytes: "is empty", "is text in UTF-16", "is
/// binary data"; else "".
inline std::string_view not_text(std::string_view head) {
  if (head.empty()) return "is empty";
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return "is text in UTF-16";
  return head.find('\0') != head.npos ? "is binary data" : "";
}

/// Whether `head`, the first bytes of a file, is the begin of a job file.
inline bool begins_job_file(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != head.npos && head[first] == '{' && head.find("\"tidepool_job\"") != head.npos;
}

}  // namespace tidepool
