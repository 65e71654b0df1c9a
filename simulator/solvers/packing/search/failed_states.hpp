// States of a search that are known to lead nowhere.
#pragma once

#include <cstdint>
#include <vector>

namespace tidepool {

/// A set of 128-bit fingerprints in bounded memory: when the set is full, it is emptied. Two different states have the
/// same fingerprint with a probability of 2^-128, far below that of a wrong bit in memory.
class FailedStates {
 public:
  struct Key {
    std::uint64_t low = 0, high = 0;
    bool operator==(const Key&) const = default;
  };

  bool contains(Key key) const {
    if (slots_.empty()) return false;
    for (std::uint64_t at = key.low & mask_;; at = (at + 1) & mask_) {
      if (slots_[at] == key) return true;
      if (slots_[at] == Key{}) return false;
    }
  }

  void insert(Key key) {
    if (key == Key{}) return;
    if (2 * (used_ + 1) > slots_.size()) grow();
    ++used_;
    put(key);
  }

  void clear() {
    slots_.clear();
    used_ = 0;
    mask_ = 0;
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 22;  // 64 MiB

  void put(Key key) {
    std::uint64_t at = key.low & mask_;
    while (slots_[at] != Key{}) at = (at + 1) & mask_;
    slots_[at] = key;
  }

  void grow() {
    std::vector<Key> before(slots_.size() >= kMost ? kMost : slots_.empty() ? 1024 : 2 * slots_.size());
    before.swap(slots_);
    mask_ = slots_.size() - 1;
    if (before.size() == slots_.size()) {
      used_ = 0;
      return;
    }
    for (const Key& key : before)
      if (key != Key{}) put(key);
  }

  std::vector<Key> slots_;
  std::uint64_t mask_ = 0;
  std::size_t used_ = 0;
};

}  // namespace tidepool
