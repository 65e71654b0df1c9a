#include "traces/trace_hash.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

#include "traces/trace.hpp"

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

}  // namespace

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

}  // namespace tidepool
