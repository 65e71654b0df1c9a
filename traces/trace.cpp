#include "traces/trace.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "traces/base/text.hpp"
#include "traces/trace_check.hpp"

namespace tidepool {

namespace {

/// Collects numbers and hashes many at a time. So padding and the layout of the structs do not matter.
class Digest {
 public:
  Digest() { XXH3_64bits_reset(&state_); }

  void add(std::uint64_t word) {
    if (used_ == kWords) flush();
    words_[used_++] = word;
  }
  void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  /// Two 32-bit values.
  void add(std::uint64_t low, std::uint64_t high) { add(low | high << 32); }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    for (; text.size() > 8; text.remove_prefix(8)) add(head(text));
    add(head(text));
  }
  std::string text() {
    flush();
    return fmt::format("{:016x}", XXH3_64bits_digest(&state_));
  }

 private:
  static std::uint64_t head(std::string_view text) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), text.size() < 8 ? text.size() : 8);
    return word;
  }
  void flush() {
    XXH3_64bits_update(&state_, words_, used_ * sizeof words_[0]);
    used_ = 0;
  }

  static constexpr std::size_t kWords = 1024;
  XXH3_state_t state_;
  std::uint64_t words_[kWords];
  std::size_t used_ = 0;
};

template <class Enum>
std::uint64_t bits(Enum value, unsigned shift) {
  return static_cast<std::uint64_t>(value) << shift;
}

/// Adds the recorded lines of the user's code. A trace without lines keeps the hash that it had before the format had
/// lines.
/// @param first  the number of the first record, so that all records of a trace have different numbers
template <class Records>
void add_lines(Digest& hash, const Records& records, std::uint64_t first) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!records[i].line.valid()) continue;
    hash.add(first + i);
    hash.add(std::uint64_t{records[i].line.value()});
  }
}

/// xxh3-64 of every field of every record, as 16 hexadecimal digits. Fields that follow from others are left out.
std::string trace_hash(const TraceData& data) {
  Digest hash;
  hash.add(std::uint64_t{data.strings.size()});
  for (const std::string& text : data.strings) hash.add(text);
  hash.add(std::uint64_t{data.streams.size()});
  for (const std::string& name : data.streams) hash.add(name);
  hash.add(data.buffers.size(), data.ops.size());
  hash.add(data.uses.size(), data.versions.size());
  hash.add(data.events.size(), data.marks.size());
  hash.add(data.orders.size(), data.outputs.size());
  for (const Buffer& b : data.buffers) {
    hash.add(b.size.count());
    hash.add(b.address);
    hash.add(b.name.value(), b.stream.value());
    hash.add(b.device | bits(b.kind, 16) | bits(b.born_before, 24));
  }
  for (const Op& op : data.ops) {
    hash.add(op.name.value(), op.module.value());
    hash.add(op.stream.value(), bits(op.kind, 0) | bits(op.phase, 8) | bits(op.random, 16));
    hash.add(op.start.count());
    hash.add(op.launch.count());
    hash.add(op.duration.count());
    hash.add(op.last_use, 0);
  }
  for (const Use& use : data.uses) {
    hash.add(use.in.value(), use.out.value());
    hash.add(bits(use.access, 0) | bits(use.evidence, 8));
  }
  for (const Version& v : data.versions) {
    hash.add(v.buffer.value(), v.producer.value());
    hash.add(v.parent.value(), bits(v.kind, 0));
  }
  for (const Event& event : data.events) hash.add(event.id, bits(event.kind, 0));
  for (const Mark& mark : data.marks) {
    hash.add(mark.event, bits(mark.kind, 0));
    hash.add(std::uint64_t{mark.name.value()});
  }
  for (const Order& order : data.orders) hash.add(order.before.value(), order.after.value());
  for (const VersionId id : data.outputs) hash.add(std::uint64_t{id.value()});
  const Losses& lost = data.losses;
  for (const std::int64_t count :
       {lost.dropped_records, lost.unmatched_frees, lost.unknown_pointers, lost.clock_residual_ns})
    hash.add(count);
  for (const auto& [key, value] : data.meta) {
    hash.add(key);
    hash.add(value);
  }
  add_lines(hash, data.buffers, 0);
  add_lines(hash, data.ops, data.buffers.size());
  return hash.text();
}

/// Compressed rows of ops by version. Two passes fill them from the same pairs in the same order: first count() for
/// each pair, then sum_up(), then fill() for each pair. A pair that is repeated, with no other op for its version
/// between, counts once.
class Rows {
 public:
  Rows(std::size_t rows, std::vector<OpId>& values, std::vector<std::uint32_t>& start)
      : values_{values}, start_{start}, last_(rows) {
    start_.assign(rows + 2, 0);
  }

  void count(std::size_t row, OpId value) {
    if (is_new(row, value)) ++start_[row + 2];  // after sum_up(), start_[row + 1] is the begin of the row
  }
  void sum_up() {
    for (std::size_t i = 2; i < start_.size(); ++i) start_[i] += start_[i - 1];
    values_.resize(start_.back());
    last_.assign(last_.size(), OpId{});
  }
  void fill(std::size_t row, OpId value) {
    if (is_new(row, value))
      values_[start_[row + 1]++] = value;  // when all values are filled in, start_[row + 1] is the end of the row
  }
  void finish() { start_.pop_back(); }

 private:
  bool is_new(std::size_t row, OpId value) {
    if (last_[row] == value) return false;
    last_[row] = value;
    return true;
  }

  std::vector<OpId>& values_;
  std::vector<std::uint32_t>& start_;
  std::vector<OpId> last_;
};

/// Names and facts come from files of any origin, and are printed. A fact may have several lines.
void make_printable(TraceData& data) {
  for (std::string& text : data.strings) text = printable(std::move(text));
  for (std::string& text : data.streams) text = printable(std::move(text));
  for (auto& [key, value] : data.meta) {
    std::string lines;
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find('\n', begin), value.size());
      lines += (begin == 0 ? "" : "\n") + printable(value.substr(begin, end - begin));
      begin = end + 1;
    }
    value = lines;
  }
}

}  // namespace

Trace::Trace(TraceData data) : data_{std::move(data)} {
  check_records(data_);
  make_printable(data_);
  ideal_peak_ = check_program(data_);
  index();
  hash_ = trace_hash(data_);
}

void Trace::index() {
  const TraceData& d = data_;
  first_version_.resize(d.buffers.size());
  for (std::size_t i = d.versions.size(); i-- > 0;)
    if (d.versions[i].kind != VersionKind::kView) first_version_[d.versions[i].buffer.index()] = VersionId{i};
  // An initial version may have been noted after a write of another buffer, but never after one of its own buffer.

  Rows readers{d.versions.size(), readers_, reader_start_}, viewers{d.versions.size(), viewers_, viewer_start_};
  std::vector<std::uint8_t> is_made(d.versions.size());
  made_start_.reserve(d.ops.size() + 1);
  made_start_.assign(1, 0);
  for (std::size_t i = 0; i < d.ops.size(); ++i) {
    for (const Use& use : uses(OpId{i})) {
      if (use.in.valid()) {
        const std::size_t read = root(use.in).index();
        readers.count(read, OpId{i});
        if (use.access == Access::kView) viewers.count(read, OpId{i});
      }
      if (use.out.valid() && use.access != Access::kView && !is_made[use.out.index()]) {
        is_made[use.out.index()] = 1;
        made_.push_back(use.out);
      }
    }
    made_start_.push_back(static_cast<std::uint32_t>(made_.size()));
  }
  readers.sum_up();
  viewers.sum_up();
  for (std::size_t i = 0; i < d.ops.size(); ++i)
    for (const Use& use : uses(OpId{i})) {
      if (!use.in.valid()) continue;
      const std::size_t read = root(use.in).index();
      readers.fill(read, OpId{i});
      if (use.access == Access::kView) viewers.fill(read, OpId{i});
    }
  readers.finish();
  viewers.finish();

  position_.resize(d.ops.size());
  allocated_for_.resize(d.events.size());
  OpId next;
  for (std::size_t i = d.events.size(); i-- > 0;) {
    if (d.events[i].kind == EventKind::kRun) {
      next = OpId{d.events[i].id};
      position_[next.index()] = static_cast<std::uint32_t>(i);
    } else if (d.events[i].kind == EventKind::kAlloc) {
      allocated_for_[i] = next;
    } else {
      next = OpId{};
    }
  }
}

}  // namespace tidepool
