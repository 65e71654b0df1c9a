// The latest accesses to each part of the memory, which a new use must wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// Tasks of a lane are numbered from 1 and run in order. A wait for number n is a wait for all tasks up to n.
struct Wait {
  std::uint32_t lane = 0;
  std::uint32_t number = 0;
  bool operator==(const Wait&) const = default;
};

/// The latest task to wait for, by lane; 0 for none.
using LaneNumbers = std::vector<std::uint32_t>;

/// Every place of a plan, with the tasks that read and wrote it. A place may share addresses with earlier places: all
/// tasks that used those addresses, including copies under way, must end before the new place is used. open() is O(log
/// n), plus O(lanes) for each earlier place that it overlaps; open_within() is O(log n) plus the number of closed
/// places in the range; the other functions are O(lanes).
class Places {
 public:
  explicit Places(std::size_t lanes) : lanes_{lanes} {}

  /// A place in its own memory (kNoAddress), or at [offset, offset + size) of the device.
  /// @return  its number; numbers of closed places are used again
  std::uint32_t open(Bytes offset, Bytes size);
  /// The same for a place whose addresses are mapped to other memory: (first, size) of every part of that memory.
  std::uint32_t open(Bytes offset, Bytes size, std::span<const std::pair<Bytes, Bytes>> memory);
  /// The place ends; its accesses are kept until its addresses are reused.
  void close(std::uint32_t place);

  Bytes offset(std::uint32_t place) const { return states_[place].offset; }
  Bytes size(std::uint32_t place) const { return states_[place].size; }

  /// Adds the tasks that must end before the content may be read.
  void before_reading(std::uint32_t place, LaneNumbers& need) const;
  /// Adds the tasks that must end before the place may be written.
  void before_writing(std::uint32_t place, LaneNumbers& need) const;
  void was_read(std::uint32_t place, Wait by);
  /// Records that task `by`, which has waited for before_writing(), wrote the place.
  void was_written(std::uint32_t place, Wait by);

  /// An open place with an address in [offset, offset + size); none if there is none.
  std::optional<std::uint32_t> open_within(Bytes offset, Bytes size) const;

 private:
  struct State {
    Bytes offset, size;
    std::uint32_t pieces = 0;  ///< address ranges of the map that still belong to it
    bool open = false;
  };
  struct Piece {
    Bytes end;
    std::uint32_t place = 0;
  };
  std::uint32_t* writes(std::uint32_t place) { return touches_.data() + std::size_t{place} * 2 * lanes_; }
  std::uint32_t* reads(std::uint32_t place) { return writes(place) + lanes_; }
  std::uint32_t fresh(Bytes offset, Bytes size);
  void claim(std::uint32_t place, Bytes first, Bytes end);
  void lose_piece(std::uint32_t place);

  std::size_t lanes_;
  std::vector<State> states_;
  std::vector<std::uint32_t> touches_;  ///< for each place, by lane: latest writer, then latest reader
  std::vector<std::uint32_t> unused_;
  std::map<Bytes, Piece> pieces_;  ///< by first address; disjoint; the latest place at each address
};

/// The addresses that a plan has reserved on the device. All functions are about the range [offset, offset + size).
class Segments {
 public:
  /// @return  false if part of the range is reserved already
  bool reserve(Bytes offset, Bytes size);
  /// @return  false if part of the range is not reserved
  bool release(Bytes offset, Bytes size);
  /// Whether all of the range is reserved.
  bool contain(Bytes offset, Bytes size) const;
  /// Whether part of the range is reserved.
  bool overlap(Bytes offset, Bytes size) const;

 private:
  std::map<Bytes, Bytes> ranges_;  ///< first address to end; neighbours are joined
};

}  // namespace tidepool
