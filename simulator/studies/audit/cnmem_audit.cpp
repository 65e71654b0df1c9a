#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <variant>

#include "simulator/engine/pools/cnmem.hpp"
#include "simulator/studies/audit/audit.hpp"
#include "simulator/studies/audit/memory_pieces.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr std::int64_t kMostAddress = std::int64_t{1} << 61;

/// A device that hands out the logged segments. If none are logged, a new segment begins at the next recorded block.
class LoggedDevice final : public Device {
 public:
  LoggedDevice(Bytes first, std::span<const LoggedSegment> segments, DeviceAudit& audit)
      : expected_{first}, segments_{segments}, audit_{audit} {}

  /// Sets the logged address of the next block.
  void expect(Bytes address) { expected_ = address; }

  std::optional<Bytes> reserve(Bytes size) override {
    const Bytes address = segments_.empty() ? expected_ : next_logged(size);
    if (wrong_.empty() && held_.add({address, size}, {}) == held_.end())
      wrong_ = fmt::format("the model asks the device for {} B; the log shows {:#x}, which is in a segment already",
                           size.count(), address.count());
    if (!wrong_.empty()) return {};
    ++(segments_.empty() ? audit_.inferred_segments : audit_.segment_matched);
    return address;
  }
  // CnMem releases no memory to the device and maps no pages.
  void release(Bytes, Bytes) override {}
  Bytes reserve_addresses(Bytes) override { return {}; }
  void release_addresses(Bytes, Bytes) override {}
  bool map(Bytes, Bytes, Bytes) override { return false; }
  void unmap(Bytes, Bytes, Bytes) override {}

  /// A message about the first request that contradicts the log, or "".
  const std::string& wrong() const { return wrong_; }

 private:
  Bytes next_logged(Bytes size) {
    if (given_ == segments_.size()) {
      wrong_ = fmt::format("the model asks for segment {} of {} B; the log has {}", given_, size.count(),
                           counted(static_cast<std::int64_t>(given_), "segment"));
      return {};
    }
    const LoggedSegment& segment = segments_[given_++];
    const double asked = static_cast<double>(size.count()) / kMebibyte;
    if (std::abs(asked - segment.mebibytes) > 1e-5 * segment.mebibytes)
      wrong_ = fmt::format("the log shows segment {} of {:g} MiB at {:#x}; the model asks for {} B", given_ - 1,
                           segment.mebibytes, segment.address.count(), size.count());
    return segment.address;
  }

  Bytes expected_;
  std::span<const LoggedSegment> segments_;
  std::size_t given_ = 0;
  DeviceAudit& audit_;
  MemoryPieces<std::monostate> held_;  // segments
  std::string wrong_;
};

Bytes first_address(const Trace& trace) {
  for (const Event& event : trace.events())
    if (event.kind == EventKind::kAlloc && trace.buffers()[event.id].address >= 0)
      return Bytes{trace.buffers()[event.id].address};
  throw InputError{"no allocation has a recorded address; expected a log that was recorded under CnMem"};
}

/// @return the first difference between model and log; "" if they agree
std::string replay(const Trace& trace, CnMem& model, LoggedDevice& device, DeviceAudit& audit) {
  if (!device.wrong().empty()) return device.wrong();
  std::int64_t event = 0;
  for (const Event& step : trace.events()) {
    if (step.kind != EventKind::kAlloc && step.kind != EventKind::kFree) continue;
    const Buffer& buffer = trace.buffers()[step.id];
    if (step.kind == EventKind::kAlloc) {
      device.expect(Bytes{buffer.address});
      const std::optional<Block> block = model.malloc(buffer.size);
      if (!device.wrong().empty()) return fmt::format("event {}: {}", event, device.wrong());
      if (block->offset.count() != buffer.address)
        return fmt::format("event {}: the log shows {} B at {:#x}; the model gives {:#x}", event, buffer.size.count(),
                           buffer.address, block->offset.count());
      ++audit.matched;
    } else if (!buffer.born_before && !model.free(Bytes{buffer.address})) {
      return fmt::format("event {}: the log frees {:#x}, which is not in use", event, buffer.address);
    }
    ++event;
  }
  return "";
}

}  // namespace

std::vector<LoggedSegment> parse_segments(const std::string& path, std::string_view text) {
  std::vector<LoggedSegment> segments;
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(row.size() + 1, text.size()));
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto refuse = [&] {
      return InputError{
          fmt::format("'{}' is not a segment; expected an address and a size in MiB, as in 0x7062c0000 256", row)}
          .at(fmt::format("{}:{}", path, line));
    };
    if (!row.starts_with("0x")) throw refuse();
    std::int64_t address = 0;
    const char* end = row.data() + row.size();
    const auto [after, error] = std::from_chars(row.data() + 2, end, address, 16);
    if (error != std::errc{} || after == end || *after != ' ' || address < 0 || address > kMostAddress) throw refuse();
    double size = 0;
    const auto [rest, bad] = std::from_chars(after + 1, end, size);
    if (bad != std::errc{} || !(size > 0) || size > 1e9) throw refuse();
    if (std::string_view{rest, end}.find_first_not_of(" \t\r") != std::string_view::npos) throw refuse();
    segments.push_back({Bytes{address}, size});
  }
  return segments;
}

AuditReport audit_cnmem(const Trace& trace, Bytes initial, std::span<const LoggedSegment> segments) {
  DeviceAudit audit;
  for (const Event& event : trace.events()) audit.allocations += event.kind == EventKind::kAlloc;
  audit.segment_allocations = static_cast<std::int64_t>(segments.size());
  LoggedDevice device{first_address(trace), segments, audit};
  CnMem model{device, initial};
  if (std::string what = replay(trace, model, device, audit); !what.empty()) audit.first_mismatch = std::move(what);
  AuditReport report;
  report.devices.push_back(std::move(audit));
  return report;
}

}  // namespace tidepool
