// Free blocks of an allocator by address, for a first fit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/engine/pools/free_index.hpp"

namespace tidepool {

/// A set of free blocks ordered by address, in pages of up to 32 blocks. The size of each page's largest block is
/// stored. find() scans these sizes (8 bytes each), then one page.
class AddressIndex {
 public:
  static constexpr bool kSmallestFirst = false;

  struct Place {
    std::uint32_t page = kNoPage;
    std::uint32_t slot = 0;
    bool valid() const { return page != kNoPage; }
  };

  void insert(const FreeBlock& block) {
    if (pages_.empty()) {
      pages_.emplace_back();
      largest_.emplace_back();
    }
    std::size_t p = page_of(block.address);
    if (pages_[p].count == kPageSize) {
      split(p);
      if (block.address > pages_[p + 1].blocks[0].address) ++p;
    }
    Page& page = pages_[p];
    std::size_t slot = page.count++;
    for (; slot > 0 && page.blocks[slot - 1].address > block.address; --slot) page.blocks[slot] = page.blocks[slot - 1];
    page.blocks[slot] = block;
    largest_[p] = std::max(largest_[p], block.size);
  }

  /// Removes the block of this size and address, which must be in the set.
  void erase(Bytes /*size*/, Bytes address) {
    const std::size_t p = page_of(address);
    std::uint32_t slot = 0;
    while (pages_[p].blocks[slot].address != address) ++slot;
    erase({static_cast<std::uint32_t>(p), slot});
  }

  void erase(Place place) {
    Page& page = pages_[place.page];
    const Bytes size = page.blocks[place.slot].size;
    for (std::size_t slot = place.slot; slot + 1 < page.count; ++slot) page.blocks[slot] = page.blocks[slot + 1];
    --page.count;
    if (page.count == 0 && pages_.size() > 1) {
      pages_.erase(pages_.begin() + place.page);
      largest_.erase(largest_.begin() + place.page);
    } else if (size == largest_[place.page]) {
      measure(place.page);
    }
  }

  /// The block with the lowest address among those of at least `size` bytes; not valid if there is none.
  Place find(Bytes size) const {
    for (std::size_t p = 0; p < pages_.size(); ++p) {
      if (largest_[p] < size) continue;
      for (std::uint32_t slot = 0; slot < pages_[p].count; ++slot)
        if (pages_[p].blocks[slot].size >= size) return {static_cast<std::uint32_t>(p), slot};
    }
    return {};
  }

  const FreeBlock& at(Place place) const { return pages_[place.page].blocks[place.slot]; }
  /// Size of the largest block, 0 if there is none.
  Bytes largest() const { return largest_.empty() ? Bytes{} : *std::max_element(largest_.begin(), largest_.end()); }

 private:
  static constexpr std::uint32_t kNoPage = UINT32_MAX;
  static constexpr std::size_t kPageSize = 32;
  struct Page {
    std::size_t count = 0;
    FreeBlock blocks[kPageSize];
  };

  /// The last page that begins at or below `address`; the first page if none does.
  std::size_t page_of(Bytes address) const {
    std::size_t first = 0, length = pages_.size();
    while (length > 1) {
      const std::size_t half = length / 2;
      first = pages_[first + half].blocks[0].address <= address ? first + half : first;
      length -= half;
    }
    return first;
  }

  void measure(std::size_t p) {
    largest_[p] = {};
    for (std::size_t slot = 0; slot < pages_[p].count; ++slot)
      largest_[p] = std::max(largest_[p], pages_[p].blocks[slot].size);
  }

  void split(std::size_t p) {
    pages_.insert(pages_.begin() + static_cast<std::ptrdiff_t>(p) + 1, Page{});
    largest_.insert(largest_.begin() + static_cast<std::ptrdiff_t>(p) + 1, Bytes{});
    Page& low = pages_[p];
    Page& high = pages_[p + 1];
    std::copy(low.blocks + kPageSize / 2, low.blocks + kPageSize, high.blocks);
    low.count = high.count = kPageSize / 2;
    measure(p);
    measure(p + 1);
  }

  std::vector<Page> pages_;
  std::vector<Bytes> largest_;  // by page
};

}  // namespace tidepool
