#include "traces/import/dtr_log.hpp"

#include <simdjson.h>

#include <algorithm>
#include <unordered_map>

#include "traces/base/lines.hpp"

namespace tidepool {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;
using Kind = DtrInstruction::Kind;

static_assert(Input::kPadding >= simdjson::SIMDJSON_PADDING, "lines are parsed where they stand");

class DtrReader {
 public:
  explicit DtrReader(const Input& input) : lines_{input.path(), input.bytes()} {}

  DtrLog run(const std::string& file) {
    skip_to_start();
    while (next_object()) read_instruction();
    if (log_.instructions.empty()) throw InputError{file + ": no instruction; expected one JSON object per line"};
    return std::move(log_);
  }

 private:
  void skip_to_start() {
    Lines ahead = lines_;
    while (ahead.next())
      if (ahead.text().find("\"START\"") != std::string_view::npos &&
          ahead.text().find("ANNOTAT") != std::string_view::npos) {
        lines_ = ahead;
        return;
      }
  }

  /// Steps to the next line that is not empty and reads it into `object_`. @return  false if there is none
  bool next_object() {
    do {
      if (!lines_.next()) return false;
    } while (lines_.text().find_first_not_of(" \t") == std::string_view::npos);
    element root;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(lines_.text().data());
    if (parser_.parse(bytes, lines_.text().size(), false).get(root) != simdjson::SUCCESS)
      lines_.refuse("'{}' is not JSON; expected one object per line", excerpt(lines_.text()));
    if (root.get(object_) != simdjson::SUCCESS)
      lines_.refuse("'{}' is not an object; expected one object per line", excerpt(lines_.text()));
    instruction_ = text("INSTRUCTION");
    return true;
  }

  element field(std::string_view key) const {
    element value;
    if (object_.at_key(key).get(value) != simdjson::SUCCESS) {
      if (key == "INSTRUCTION") lines_.refuse("no \"INSTRUCTION\"; expected one of {}", kKnown);
      lines_.refuse("{} without \"{}\"", instruction_, key);
    }
    return value;
  }

  std::string_view text(std::string_view key) const {
    std::string_view value;
    const element found = field(key);
    if (found.get(value) != simdjson::SUCCESS)
      lines_.refuse("\"{}\" is {}; expected a string", key, excerpt(simdjson::minify(found)));
    return value;
  }

  std::int64_t whole(element value, std::string_view key, std::int64_t least) const {
    std::int64_t number = 0;
    std::string_view text;
    bool valid = value.get(number) == simdjson::SUCCESS;
    if (value.get(text) == simdjson::SUCCESS) {
      const auto parsed = parse_whole(text);
      valid = parsed.has_value();
      number = parsed.value_or(0);
    }
    if (!valid || number < least)
      lines_.refuse("\"{}\" is {}; expected a whole number, at least {}", key, excerpt(simdjson::minify(value)), least);
    return number;
  }
  std::int64_t whole(std::string_view key, std::int64_t least) const { return whole(field(key), key, least); }

  array list(std::string_view key) const {
    array values;
    const element found = field(key);
    if (found.get(values) != simdjson::SUCCESS)
      lines_.refuse("\"{}\" is {}; expected a list", key, excerpt(simdjson::minify(found)));
    return values;
  }

  std::uint32_t name(std::string_view text) {
    const auto [entry, added] = ids_.try_emplace(std::string{text}, static_cast<std::uint32_t>(log_.names.size()));
    if (added) log_.names.emplace_back(text);
    return entry->second;
  }

  /// Calls `append` with the number of each name in a list.
  template <class Append>
  void names(std::string_view key, Append append) {
    for (const element value : list(key)) {
      std::string_view text;
      if (value.get(text) != simdjson::SUCCESS)
        lines_.refuse("\"{}\" holds {}; expected names", key, excerpt(simdjson::minify(value)));
      append(name(text));
    }
  }

  void read_instruction() {
    DtrInstruction next;
    next.line = lines_.number();
    next.args.first = static_cast<std::uint32_t>(log_.args.size());
    next.results.first = static_cast<std::uint32_t>(log_.results.size());
    next.mutated.first = static_cast<std::uint32_t>(log_.mutated.size());
    if (instruction_ == "CONSTANT") {
      next.kind = Kind::kConstant;
      log_.results.push_back({name(text("NAME")), 0, -1});
    } else if (instruction_ == "CALL" || instruction_ == "MUTATE") {
      read_op(next);
    } else if (instruction_ == "COPY" || instruction_ == "COPY_FROM") {
      next.kind = instruction_ == "COPY" ? Kind::kCopy : Kind::kCopyFrom;
      next.name = name(text("DST"));
      next.source = name(text("SRC"));
    } else if (instruction_ == "RELEASE") {
      next.kind = Kind::kRelease;
      next.name = name(text("NAME"));
    } else if (instruction_ == "ANNOTATE") {
      if (text("ANNOTATION") != "BACKWARD") return;
      next.kind = Kind::kBackward;
    } else if (instruction_ == "MEMORY" || instruction_ == "ALIAS") {
      lines_.refuse("{} of '{}'; expected it right after the CALL or CONSTANT that makes it", instruction_,
                    excerpt(text("NAME")));
    } else {
      lines_.refuse("unknown instruction '{}'; expected one of {}", excerpt(instruction_), kKnown);
    }
    next.args.last = static_cast<std::uint32_t>(log_.args.size());
    next.results.last = static_cast<std::uint32_t>(log_.results.size());
    next.mutated.last = static_cast<std::uint32_t>(log_.mutated.size());
    log_.instructions.push_back(next);
    if (next.kind == Kind::kConstant || next.kind == Kind::kCall) read_results(next);
  }

  void read_op(DtrInstruction& next) {
    next.op = name(text("NAME"));
    next.time_ns = whole("TIME", 0);
    add(time_, next.time_ns, "durations", lines_);
    names("ARGS", [&](std::uint32_t arg) { log_.args.push_back(arg); });
    const std::size_t count = log_.args.size() - next.args.first;
    if (instruction_ == "CALL") {
      next.kind = Kind::kCall;
      names("RESULT", [&](std::uint32_t result) { log_.results.push_back({result, 0, -1}); });
      return;
    }
    next.kind = Kind::kMutate;
    for (const element value : list("MUTATE")) {
      const std::int64_t position = whole(value, "MUTATE", 0);
      if (static_cast<std::uint64_t>(position) >= count)
        lines_.refuse("\"MUTATE\" names argument {}; there are {}", position, count);
      const auto mutated = static_cast<std::uint32_t>(position);
      const auto begin = log_.mutated.begin() + next.mutated.first;
      if (std::find(begin, log_.mutated.end(), mutated) != log_.mutated.end())
        lines_.refuse("\"MUTATE\" names argument {} twice", position);
      log_.mutated.push_back(mutated);
    }
  }

  /// Reads the MEMORY line of each result and, for a CALL, its ALIAS line.
  void read_results(const DtrInstruction& of) {
    for (std::uint32_t i = of.results.first; i < of.results.last; ++i) {
      DtrResult& result = log_.results[i];
      expect("MEMORY", result, of);
      result.size = whole("MEMORY", 0);
      if (of.kind == Kind::kCall) {
        expect("ALIAS", result, of);
        const std::int64_t alias = whole("ALIAS", -1);
        const std::int64_t count = of.args.last - of.args.first;
        if (alias >= count)
          lines_.refuse("\"ALIAS\" names argument {}; the CALL in line {} has {}", alias, of.line, count);
        result.alias = static_cast<std::int32_t>(alias);
        if (alias >= 0) result.size = 0;
      }
      add(size_, result.size, "sizes", lines_);
    }
  }

  void expect(std::string_view instruction, const DtrResult& result, const DtrInstruction& of) {
    const auto wanted = [&] {
      return fmt::format("{} of '{}', which the {} in line {} makes", instruction, excerpt(log_.names[result.name]),
                         of.kind == Kind::kCall ? "CALL" : "CONSTANT", of.line);
    };
    if (!next_object()) lines_.refuse("the log ends; expected {}", wanted());
    if (instruction_ != instruction) lines_.refuse("{}; expected {}", excerpt(instruction_), wanted());
    if (text("NAME") != log_.names[result.name])
      lines_.refuse("{} of '{}'; expected {}", instruction, excerpt(text("NAME")), wanted());
  }

  static constexpr std::string_view kKnown =
      "ANNOTATE, CONSTANT, MEMORY, CALL, ALIAS, MUTATE, COPY, COPY_FROM and RELEASE";

  Lines lines_;
  simdjson::dom::parser parser_;
  object object_;
  std::string_view instruction_;
  DtrLog log_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  Total size_, time_;
};

}  // namespace

DtrLog parse_dtr_log(const Input& input) { return DtrReader{input}.run(input.path()); }

}  // namespace tidepool
