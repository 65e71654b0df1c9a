#include "traces/jsonl/json_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_map>

#include "tracer/raw/fields.hpp"
#include "tracer/raw/reader.hpp"
#include "traces/base/error.hpp"
#include "traces/base/nearest.hpp"

namespace tidepool::raw {
namespace {

constexpr std::string_view kVersionKey = "tidepool_raw";

class Reader {
 public:
  explicit Reader(const Input& input) { log_.path = input.path(); }

  void line(JsonFields& line) {
    if (!begun_) return header(line);
    const std::string_view kind = line.text("kind", "");
    bool known = false;
    each_kind([&]<class Record>(const char* name) {
      if (kind != name) return;
      known = true;
      Record record;
      fields(record, [&](const char* key, auto& field) { read(line, key, field); });
      if constexpr (requires { record.uses; }) read_uses(line, record.uses);
      log_.add(record);
    });
    if (known) return;
    std::vector<std::string> names;
    each_kind([&]<class Record>(const char* name) { names.emplace_back(name); });
    throw InputError{unknown_name("record", kind, names)};
  }

  Log take() { return std::move(log_); }
  bool begun() const { return begun_; }

 private:
  void header(JsonFields& line) {
    const std::int64_t version = line.required_integer(kVersionKey);
    if (version != kFormatVersion)
      throw InputError{fmt::format("format version {}; this tidepool reads version {}", version, kFormatVersion)};
    FileHeader& header = log_.header;
    std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
    read(line, "process", header.process);
    read(line, "source", header.source);
    read(line, "clock", header.clock);
    read(line, "time", header.time);
    read(line, "realtime", header.realtime);
    read(line, "monotonic_raw", header.monotonic_raw);
    header.closed = 1;  // an incomplete file is found by its cut-off line
    begun_ = true;
  }

  template <class Field>
  void read(JsonFields& line, const char* key, Field& field) {
    if constexpr (std::is_same_v<Field, Text>) {
      const std::string_view value = line.text(key, "");
      if (value.empty()) return;
      const auto [entry, added] = texts_.try_emplace(std::string{value});
      if (added) entry->second = log_.add_text(std::string{value});
      field = entry->second;
    } else if constexpr (std::is_enum_v<Field>) {
      field = line.word(key, field);
    } else {
      constexpr auto kLeast = std::is_signed_v<Field> ? std::numeric_limits<Field>::min() : Field{};
      constexpr auto kMost =
          std::min<std::uint64_t>(std::numeric_limits<Field>::max(), std::numeric_limits<std::int64_t>::max());
      field = static_cast<Field>(
          line.integer(key, static_cast<std::int64_t>(field), kLeast, static_cast<std::int64_t>(kMost)));
    }
  }

  /// [["read", ADDRESS], ["write", ADDRESS, SIZE], ...], with the evidence of all of them in "evidence".
  void read_uses(JsonFields& line, std::uint32_t& count) {
    const Evidence evidence = line.word("evidence", Evidence::kSchema);
    line.each_row("uses", [&](const JsonRow& row) {
      if (row.size() != 2 && row.size() != 3)
        throw InputError{
            fmt::format("'uses' has a row of {}; expected [access, address] or [access, address, size]", row.size())};
      constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
      BufferUse use;
      use.access = row.word<Access>(0);
      use.address = static_cast<std::uint64_t>(row.integer(1, 0, kMost));
      if (row.size() == 3) use.size = static_cast<std::uint64_t>(row.integer(2, 0, kMost));
      use.evidence = evidence;
      log_.uses.push_back(use);
      ++count;
    });
  }

  Log log_;
  bool begun_ = false;
  std::unordered_map<std::string, Text> texts_;
};

}  // namespace

bool looks_raw_json(std::string_view head) {
  return head.starts_with("{") && head.substr(0, 64).find("\"tidepool_raw\"") != std::string_view::npos;
}

Log read_raw_json(const Input& input) {
  Reader reader{input};
  const std::size_t whole = input.bytes().rfind('\n') + 1;  // npos + 1 is 0
  const auto read = [&](const Input& lines) {
    for_each_json_line(lines, [&](JsonFields& line) { reader.line(line); });
  };
  if (whole == input.bytes().size())
    read(input);
  else
    read(Input{input.path(), input.bytes().substr(0, whole)});
  if (!reader.begun())
    throw InputError{fmt::format("{}: the first line is cut off; expected one with \"{}\"", input.path(), kVersionKey)};
  Log log = reader.take();
  log.cut_off_bytes = input.bytes().size() - whole;
  return log;
}

}  // namespace tidepool::raw
