#include "traces/trace.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "traces/base/utf8.hpp"
#include "traces/trace_check.hpp"
#include "traces/trace_hash.hpp"

namespace tidepool {
namespace {

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
