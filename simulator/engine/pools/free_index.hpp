// Free blocks of an allocator by size, for an exact best fit without a tree.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// A free block. Ordered by size, then address; `node` is the owner's number for it.
struct FreeBlock {
  Bytes size = {};
  Bytes address = {};
  std::uint32_t node = 0;
  auto operator<=>(const FreeBlock&) const = default;
};

/// A set of free blocks ordered by (size, address). Each power of two has 16 bins of sizes, and a bitmap shows which
/// bins are not empty. A bin is a sorted array with its least block at the end, because removing the last entry moves
/// no others; if it has many blocks, the larger ones are in pages of their own. An operation costs a few bit scans and
/// moves at most a page (24 bytes a block). It allocates no memory once the bins have grown to their largest, except
/// for pages.
class FreeIndex {
 public:
  static constexpr bool kSmallestFirst = true;

  /// The position of a block; valid until the next insert or erase.
  struct Place {
    std::uint32_t bin = kNoBin;
    std::uint32_t page = 0;
    std::uint32_t slot = 0;
    bool valid() const { return bin != kNoBin; }
  };

  void insert(const FreeBlock& block) {
    const std::uint32_t number = bin_of(block.size);
    Bin& bin = bins_[number];
    const std::uint32_t page = std::min(page_of(bin, block), static_cast<std::uint32_t>(bin.more.size()));
    std::vector<FreeBlock>& blocks = bin.page(page);
    std::size_t slot = blocks.size();
    blocks.push_back(block);
    for (; slot > 0 && before(blocks[slot - 1], block); --slot) blocks[slot] = blocks[slot - 1];
    blocks[slot] = block;
    if (blocks.size() > kPageSize) split(bin, page);
    filled_[number / 64] |= std::uint64_t{1} << (number % 64);
    words_ |= std::uint64_t{1} << (number / 64);
    ++count_;
  }

  /// Removes the block of this size and address, which must be in the set.
  void erase(Bytes size, Bytes address) {
    const std::uint32_t bin = bin_of(size);
    erase(place_of(bin, FreeBlock{size, address, 0}));
  }

  void erase(Place place) {
    Bin& bin = bins_[place.bin];
    std::vector<FreeBlock>& blocks = bin.page(place.page);
    for (std::size_t slot = place.slot; slot + 1 < blocks.size(); ++slot) blocks[slot] = blocks[slot + 1];
    blocks.pop_back();
    --count_;
    if (!blocks.empty()) return;
    if (!bin.more.empty()) {
      if (place.page == 0) bin.least = std::move(bin.more.front());
      bin.more.erase(bin.more.begin() + (place.page == 0 ? 0 : place.page - 1));
      return;
    }
    filled_[place.bin / 64] &= ~(std::uint64_t{1} << (place.bin % 64));
    if (filled_[place.bin / 64] == 0) words_ &= ~(std::uint64_t{1} << (place.bin / 64));
  }

  /// The least block in (size, address) order that is at least `size` large; none if there is no such block.
  Place find(Bytes size) const {
    const std::uint32_t bin = bin_of(size);
    const std::vector<FreeBlock>& largest = bins_[bin].largest();
    if (!largest.empty() && largest.front().size >= size) {
      Place above = place_of(bin, FreeBlock{size, Bytes{INT64_MIN}, 0});
      --above.slot;
      return above;
    }
    return first_after(bin);
  }

  const FreeBlock& at(Place place) const { return bins_[place.bin].page(place.page)[place.slot]; }
  /// The next block in (size, address) order; not valid after the last.
  Place next(Place place) const {
    if (place.slot > 0) return {place.bin, place.page, place.slot - 1};
    const Bin& bin = bins_[place.bin];
    if (place.page == bin.more.size()) return first_after(place.bin);
    return {place.bin, place.page + 1, static_cast<std::uint32_t>(bin.more[place.page].size() - 1)};
  }
  Place first() const { return find(Bytes{0}); }
  /// Size of the largest block, 0 if there is none.
  Bytes largest() const {
    if (words_ == 0) return {};
    const auto word = static_cast<std::uint32_t>(63 - std::countl_zero(words_));
    const auto bit = static_cast<std::uint32_t>(63 - std::countl_zero(filled_[word]));
    return bins_[word * 64 + bit].largest().front().size;
  }
  std::size_t count() const { return count_; }

 private:
  static constexpr std::uint32_t kNoBin = UINT32_MAX;
  static constexpr std::uint32_t kBins = 1024;
  static constexpr std::size_t kPageSize = 512;

  struct Bin {
    std::vector<FreeBlock> least;
    std::vector<std::vector<FreeBlock>> more;  // larger blocks, the next larger ones first; none is empty

    std::vector<FreeBlock>& page(std::uint32_t number) { return number == 0 ? least : more[number - 1]; }
    const std::vector<FreeBlock>& page(std::uint32_t number) const { return number == 0 ? least : more[number - 1]; }
    const std::vector<FreeBlock>& largest() const { return more.empty() ? least : more.back(); }
  };

  /// The first page with a block that is not below `key`; the number of pages if there is none.
  static std::uint32_t page_of(const Bin& bin, const FreeBlock& key) {
    if (bin.more.empty() || !before(bin.least.front(), key)) return 0;
    const auto found = std::partition_point(bin.more.begin(), bin.more.end(),
                                            [&](const auto& page) { return before(page.front(), key); });
    return static_cast<std::uint32_t>(found - bin.more.begin()) + 1;
  }

  /// The first slot whose block is not above `key`, in the first page with a block that is not below it.
  Place place_of(std::uint32_t number, const FreeBlock& key) const {
    const Bin& bin = bins_[number];
    const std::uint32_t page = page_of(bin, key);
    return {number, page, slot_of(bin.page(page), key)};
  }

  /// Moves the larger half of a page into a page of its own.
  static void split(Bin& bin, std::uint32_t page) {
    std::vector<FreeBlock>& blocks = bin.page(page);
    const auto half = blocks.begin() + kPageSize / 2;
    std::vector<FreeBlock> larger{blocks.begin(), half};
    blocks.erase(blocks.begin(), half);
    bin.more.insert(bin.more.begin() + page, std::move(larger));
  }

  /// The number of a size's bin. From size 16 on, it consists of the exponent and the four bits below the leading bit.
  static std::uint32_t bin_of(Bytes size) {
    const auto value = static_cast<std::uint64_t>(size.count());
    if (value < 16) return static_cast<std::uint32_t>(value);
    const auto exponent = static_cast<std::uint32_t>(63 - std::countl_zero(value));
    return (exponent - 3) * 16 + static_cast<std::uint32_t>((value >> (exponent - 4)) & 15);
  }

  static bool before(const FreeBlock& a, const FreeBlock& b) {
    return a.size < b.size || (a.size == b.size && a.address < b.address);
  }

  /// Blocks descend from slot 0 on: the first slot whose block is not above `key`; the number of blocks if all are.
  static std::uint32_t slot_of(const std::vector<FreeBlock>& blocks, const FreeBlock& key) {
    std::size_t first = 0, length = blocks.size();
    while (length > 0) {
      const std::size_t half = length / 2;
      const bool above = before(key, blocks[first + half]);
      first = above ? first + half + 1 : first;
      length = above ? length - half - 1 : half;
    }
    return static_cast<std::uint32_t>(first);
  }

  /// The least block of the first filled bin above `bin`.
  Place first_after(std::uint32_t bin) const {
    std::uint32_t word = (bin + 1) / 64;
    if (word >= filled_.size()) return {};
    std::uint64_t bits = filled_[word] & (~std::uint64_t{0} << ((bin + 1) % 64));
    if (bits == 0) {
      const std::uint64_t words = word + 1 < 64 ? words_ & (~std::uint64_t{0} << (word + 1)) : 0;
      if (words == 0) return {};
      word = static_cast<std::uint32_t>(std::countr_zero(words));
      bits = filled_[word];
    }
    const std::uint32_t found = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    return {found, 0, static_cast<std::uint32_t>(bins_[found].least.size() - 1)};
  }

  std::array<Bin, kBins> bins_;
  std::array<std::uint64_t, kBins / 64> filled_{};
  std::uint64_t words_ = 0;
  std::size_t count_ = 0;
};

}  // namespace tidepool
