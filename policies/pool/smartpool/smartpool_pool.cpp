#include "policies/pool/smartpool/smartpool_pool.hpp"

#include <algorithm>

namespace tidepool {
namespace {

constexpr std::size_t kSearchEvery = 300;

}  // namespace

void SmartPool::start(const Trace&, Bytes capacity, Device& device) {
  *this = SmartPool{fit_};
  device_ = &device;
  capacity_ = capacity;
  next_search_ = kSearchEvery;
}

std::optional<Block> SmartPool::place(const Request& request) {
  if (!searching_ && !serving_ && period_.length > 0 && count_ >= switch_at_) switch_over();
  std::optional<Block> block = serving_ ? from_pool(request.size) : std::nullopt;
  if (!block) {
    // A device has no segments without bytes.
    const Bytes size = std::max(request.size, 1_B);
    const std::optional<Bytes> address = device_->reserve(size);
    if (!address) return {};
    block = Block{*address, size};
    live_[address->count()] = {count_, size, {}};
    raw_ += size;
    misses_ += serving_;
  }
  if (!serving_) events_.push_back({request.size.count()});
  end_event();
  return block;
}

void SmartPool::release(const Block& block) {
  const auto found = live_.find(block.offset.count());
  const Live live = found->second;
  live_.erase(found);
  if (live.slot) {
    taken_.erase(block.offset - pool_at_);
    pooled_ -= live.size;
  } else {
    device_->release(block.offset, block.size);
    raw_ -= live.size;
  }
  if (!serving_) events_.push_back({static_cast<std::int64_t>(count_ - live.event), live.event});
  end_event();
}

void SmartPool::end_event() {
  count_load();
  ++count_;
  if (searching_ && count_ % kSearchEvery == 0 && count_ >= next_search_) search();
}

void SmartPool::search() {
  next_search_ *= 2;
  period_ = find_smartpool_period(events_);
  if (period_.length == 0) return;
  searching_ = false;
  switch_at_ = count_ + period_.length - (count_ - period_.location) % period_.length;
}

void SmartPool::switch_over() {
  const SmartPoolPlan plan = plan_smartpool(events_, period_, fit_);
  const std::optional<Bytes> address = device_->reserve(std::max(plan.height, 1_B));
  if (!address) {
    period_ = {};
    return;
  }
  serving_ = true;
  pool_at_ = *address;
  pool_size_ = plan.height;
  cross_ = plan.cross;
  slots_.assign(period_.length, {});
  for (const SmartPoolSlot& slot : plan.slots) slots_[slot.malloc] = slot;
  events_ = {};
}

std::optional<Block> SmartPool::from_pool(Bytes size) {
  const std::size_t index = (count_ - period_.location) % period_.length;
  const std::optional<SmartPoolSlot>& slot = slots_[index];
  if (!slot || slot->size != size) return {};
  Bytes offset = slot->offset;
  if (slot->cross && taken_.contains(offset)) offset += cross_;
  if (!is_free(offset, size)) return {};
  taken_.emplace(offset, size);
  live_[(pool_at_ + offset).count()] = {count_, size, index};
  pooled_ += size;
  ++hits_;
  return Block{pool_at_ + offset, size};
}

bool SmartPool::is_free(Bytes offset, Bytes size) const {
  const auto above = taken_.lower_bound(offset);
  if (above != taken_.end() && above->first < offset + size) return false;
  return above == taken_.begin() || std::prev(above)->first + std::prev(above)->second <= offset;
}

void SmartPool::count_load() {
  if (serving_ && count_ > switch_at_ + 2 * period_.length) return;
  most_raw_ = std::max(most_raw_, raw_);
  if (pooled_ <= most_pooled_) return;
  most_pooled_ = pooled_;
  raw_at_most_pooled_ = raw_;
}

std::vector<Count> SmartPool::counts() const {
  const SmartPoolReport made = report();
  return {{"counted_bytes", made.usage.count()},
          {"pool_bytes", made.pool.count()},
          {"period_events", static_cast<std::int64_t>(made.period.length)},
          {"pool_hits", made.hits},
          {"pool_misses", made.misses}};
}

SmartPoolReport SmartPool::report() const {
  SmartPoolReport report;
  report.hits = hits_;
  report.misses = misses_;
  if (serving_) {
    report.period = period_;
    report.pool = pool_size_;
  }
  report.load = std::max(most_raw_, most_pooled_ + raw_at_most_pooled_);
  report.usage = std::max(most_raw_, pool_size_ + raw_at_most_pooled_);
  return report;
}

}  // namespace tidepool
