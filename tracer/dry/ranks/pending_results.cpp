#include "tracer/dry/ranks/pending_results.hpp"

#include <algorithm>
#include <utility>

namespace tidepool::dry {

std::uint64_t PendingResults::add(std::uint64_t address, std::uint64_t bytes, std::function<void()> fetch,
                                  std::vector<ByteRange> reads) {
  const std::lock_guard lock{mutex_};
  ++count_;
  results_.emplace(++last_, Result{{address, bytes}, std::move(fetch), std::move(reads)});
  return last_;
}

void PendingResults::depend(ResultNumbers& dependent, const ResultNumbers& on) {
  if (count_ == 0) return;
  const std::lock_guard lock{mutex_};
  std::erase_if(dependent, [&](std::uint64_t number) { return !results_.contains(number); });
  for (const std::uint64_t number : on)
    if (results_.contains(number) && std::find(dependent.begin(), dependent.end(), number) == dependent.end())
      dependent.push_back(number);
}

bool PendingResults::belong(std::uint64_t address, std::uint64_t bytes) {
  if (count_ == 0) return false;
  const std::lock_guard lock{mutex_};
  return std::any_of(results_.begin(), results_.end(), [&](const auto& each) {
    return each.second.to.overlaps({address, bytes});
  });
}

template <class Wanted>
void PendingResults::fetch_if(const Wanted& wanted) {
  if (count_ == 0) return;
  const std::lock_guard fetching{fetching_};
  for (std::uint64_t after = 0;;) {
    std::function<void()> fetch;
    {
      const std::lock_guard lock{mutex_};
      auto next = results_.upper_bound(after);
      while (next != results_.end() && !wanted(next->first, next->second)) ++next;
      if (next == results_.end()) return;
      after = next->first;
      fetch = next->second.fetch;
    }
    fetch();
    const std::lock_guard lock{mutex_};
    count_ -= results_.erase(after);
  }
}

void PendingResults::fetch_all() {
  fetch_if([](std::uint64_t, const Result&) { return true; });
}

void PendingResults::fetch(const ResultNumbers& numbers) {
  fetch_if([&](std::uint64_t number, const Result&) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  });
}

void PendingResults::fetch(std::uint64_t address, std::uint64_t bytes) {
  fetch_if([&](std::uint64_t, const Result& result) { return result.to.overlaps({address, bytes}); });
}

void PendingResults::fetch_readers(std::uint64_t address, std::uint64_t bytes) {
  fetch_if([range = ByteRange{address, bytes}](std::uint64_t, const Result& result) {
    return std::any_of(result.reads.begin(), result.reads.end(),
                       [&](const ByteRange& read) { return read.overlaps(range); });
  });
}

void PendingResults::drop(std::uint64_t address, std::uint64_t bytes) {
  if (count_ == 0) return;
  fetch_readers(address, bytes);
  const std::lock_guard lock{mutex_};
  count_ -= std::erase_if(results_, [&](const auto& each) { return each.second.to.overlaps({address, bytes}); });
}

PendingResults& pending_results() {
  static PendingResults* const results = new PendingResults;  // never destroyed, like the dry device itself
  return *results;
}

}  // namespace tidepool::dry
