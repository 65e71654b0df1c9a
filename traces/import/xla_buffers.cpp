// XLA's buffer assignment, which --xla_dump_to=FOLDER writes (*-buffer-assignment.txt): allocations, and the values
// that share each of them, with size and offset.
//   BufferAssignment:
//   allocation 6: size 262144, parameter 0, shape |f32[256,256]| at ShapeIndex {}:
//    value: <106 p.1{} @0> (size=262144,offset=0): f32[256,256]{1,0}
// The live ranges are in the same file (until 2025) or beside it (*-live-range.txt): [first, last] in instructions.
//   HloLiveRange (max 40):
//     InstructionSequence:
//       0:p.1
//     BufferLiveRange:
//       p.1{}:0-40
// Instructions become ops that say nothing about their uses. Values become buffers with the address that XLA chose: the
// allocations lie one behind the other. Values that live at one address at the same time are one buffer, since XLA lets
// an instruction write its result over an operand. Values without a live range, such as those of a fusion's inside, are
// left out.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

struct LiveRange {
  std::int64_t first = 0, last = 0;  ///< instructions, both included
};

/// The instructions in order, and the live range of each value by its name, as in "p.1{}".
struct LiveRanges {
  std::vector<std::string> instructions;
  std::unordered_map<std::string, LiveRange> of;
};

struct PlacedValue {
  std::string name;
  std::int64_t size = 0;
  std::int64_t address = 0;
  LiveRange range;
  bool older = false;  ///< a parameter or a constant, which exists before the program
};

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

/// The number between `before` and the next character of `ends`; none if there is no such number.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view before, std::string_view ends) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return parse_whole(text.substr(0, text.find_first_of(ends)));
}

/// @throws InputError  if there are no live ranges
LiveRanges read_ranges(const Input& input) {
  Lines lines{input.path(), input.bytes()};
  LiveRanges ranges;
  bool sequence = false, values = false;
  while (lines.next()) {
    const std::string_view line = trimmed(lines.text());
    if (line == "InstructionSequence:" || line == "BufferLiveRange:") {
      sequence = line.starts_with('I');
      values = !sequence;
      continue;
    }
    if (line.starts_with("Live ranges at")) break;
    const std::size_t colon = sequence ? line.find(':') : line.rfind(':');
    if (sequence && colon != std::string_view::npos) {
      if (parse_whole(line.substr(0, colon)) != static_cast<std::int64_t>(ranges.instructions.size()))
        lines.refuse("'{}'; expected instruction {}", excerpt(line), ranges.instructions.size());
      ranges.instructions.emplace_back(line.substr(colon + 1));
    } else if (values && colon != std::string_view::npos) {
      const std::string_view span = line.substr(colon + 1);
      const std::size_t dash = span.find('-');
      const auto first = parse_whole(span.substr(0, dash));
      const auto last = dash == std::string_view::npos ? std::nullopt : parse_whole(span.substr(dash + 1));
      if (!first || !last || *first < 0 || *first > *last)
        lines.refuse("'{}'; expected a value and its live range, as in p.1{{}}:0-40", excerpt(line));
      ranges.of[std::string{line.substr(0, colon)}] = {*first, *last};
    }
  }
  if (ranges.of.empty()) refuse("{}: no live ranges; expected HloLiveRange and BufferLiveRange", input.path());
  return ranges;
}

/// The name of a value, as in "p.1{}" of "<106 p.1 @0> (size=...".
std::string value_name(std::string_view text) {
  text = text.substr(0, text.find(" @"));
  text = text.substr(0, text.find(" (phi)"));
  const std::size_t blank = text.find(' ');
  std::string name{blank == std::string_view::npos ? text : text.substr(blank + 1)};
  return name.ends_with('}') ? name : name + "{}";
}

class AssignmentReader {
 public:
  AssignmentReader(const Input& input, const Input& ranges)
      : lines_{input.path(), input.bytes()}, ranges_{read_ranges(ranges)} {}

  Trace run() {
    while (lines_.next()) {
      const std::string_view line = trimmed(lines_.text());
      if (line.starts_with("allocation ")) begin_allocation(line);
      if (line.starts_with("value: <")) add_value(line.substr(8));
      if (line.starts_with("Total bytes used")) break;
    }
    if (!allocations_) lines_.refuse("no allocation; expected lines as in 'allocation 0: size 4096, parameter 0'");
    return build();
  }

 private:
  void begin_allocation(std::string_view line) {
    const std::optional<std::int64_t> size = number_after(line, " size ", ",:");
    if (!size || *size < 0) lines_.refuse("'{}'; expected the size of an allocation, as in size 4096", excerpt(line));
    allocations_ = true;
    base_ = end_;
    size_ = *size;
    add(sizes_, size_, "sizes", lines_);
    end_ += size_;
    older_ = line.find(", parameter ") != std::string_view::npos || line.find(", constant") != std::string_view::npos;
  }

  void add_value(std::string_view line) {
    const std::optional<std::int64_t> size = number_after(line, "(size=", ",)"),
                                      offset = number_after(line, "offset=", ",)");
    if (!size || !offset || !allocations_) lines_.refuse("'{}'; expected a value with size and offset", excerpt(line));
    if (*size < 0 || *offset < 0 || *size > size_ || *offset > size_ - *size)
      lines_.refuse("a value of {} B at offset {}; expected one within its allocation of {} B", *size, *offset, size_);
    const std::string name = value_name(line);
    const auto found = ranges_.of.find(name);
    if (found == ranges_.of.end()) return;
    PlacedValue value{name.substr(0, name.find('{')), *size, base_ + *offset, found->second, older_};
    const auto same = by_place_.find({value.address, value.size});
    if (same != by_place_.end())
      for (const std::size_t i : same->second)
        if (join(values_[i], value)) return;
    by_place_[{value.address, value.size}].push_back(values_.size());
    values_.push_back(std::move(value));
  }

  /// Adds the life of a value to one at the same place, if they overlap.
  static bool join(PlacedValue& into, const PlacedValue& value) {
    if (value.range.first > into.range.last || value.range.last < into.range.first) return false;
    if (value.range.first < into.range.first) into.name = value.name;
    into.range = {std::min(into.range.first, value.range.first), std::max(into.range.last, value.range.last)};
    into.older = into.older || value.older;
    return true;
  }

  Trace build() {
    const auto instructions = static_cast<std::int64_t>(ranges_.instructions.size());
    std::multimap<std::int64_t, std::size_t> begins, ends;
    std::vector<BufferId> buffers(values_.size());
    const auto spec_of = [&](std::size_t i) {
      Buffer spec;
      spec.size = Bytes{values_[i].size};
      spec.address = values_[i].address;
      spec.name = builder_.text(values_[i].name);
      return spec;
    };
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].range.last < instructions) ends.emplace(values_[i].range.last, i);
      if (values_[i].older)
        buffers[i] = builder_.existing(spec_of(i));
      else
        begins.emplace(values_[i].range.first, i);
    }
    for (std::int64_t at = 0; at < instructions; ++at) {
      for (auto [i, last] = begins.equal_range(at); i != last; ++i)
        buffers[i->second] = builder_.alloc(spec_of(i->second));
      Op op;
      op.name = builder_.text(ranges_.instructions[static_cast<std::size_t>(at)]);
      builder_.run(op, {});
      for (auto [i, last] = ends.equal_range(at); i != last; ++i) builder_.free(buffers[i->second]);
    }
    builder_.meta()["source"] = "xla-buffers";
    builder_.meta()["time"] = "estimated";
    builder_.meta()["placed_bytes"] = std::to_string(end_);
    builder_.meta()["placed_by"] = "XLA";
    return builder_.finish();
  }

  Lines lines_;
  LiveRanges ranges_;
  Total sizes_;
  bool allocations_ = false, older_ = false;
  std::int64_t base_ = 0, end_ = 0, size_ = 0;                                          // of the allocation
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> by_place_;  // by address and size
  std::vector<PlacedValue> values_;
  TraceBuilder builder_;
};

/// The live ranges are in the same file, or in the one beside it.
Trace read_with_ranges(const Input& input) {
  if (input.bytes().find("HloLiveRange") != std::string_view::npos) return read_xla_buffers(input, input);
  std::string beside = input.path();
  constexpr std::string_view kEnding = "buffer-assignment.txt";
  if (!beside.ends_with(kEnding) ||
      !std::filesystem::exists(beside.replace(beside.size() - kEnding.size(), kEnding.size(), "live-range.txt")))
    refuse("{}: no live ranges; expected them beside it, in *live-range.txt, or given by --with", input.path());
  return read_xla_buffers(input, read_input(beside));
}

int sniff_xla_buffers(std::string_view head) { return head.starts_with("BufferAssignment:") ? 95 : 0; }

const RegisterImporter kXlaBuffers{
    {.name = "xla-buffers",
     .summary = "XLA's buffer assignments, with the live ranges beside them (--xla_dump_to=FOLDER)",
     .extensions = {".txt"},
     .sniff = sniff_xla_buffers,
     .read = read_with_ranges,
     .read_with = [](const Input& input, const Input& ranges, std::optional<std::size_t>) {
       return read_xla_buffers(input, ranges);
     }}};

}  // namespace

Trace read_xla_buffers(const Input& input, const Input& ranges) { return AssignmentReader{input, ranges}.run(); }

}  // namespace tidepool
