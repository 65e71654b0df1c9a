// Python pickles as data: nothing in one is ever executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace tidepool {

/// The index of a value in a Pickle.
using PickleId = std::uint32_t;

/// A pickle of protocol 2 to 5 that holds none, bools, numbers, texts, tuples, lists and dicts. Values that the file
/// shares (memo) are shared here, and so are equal texts and equal small numbers. Memory is proportional to the length
/// of the file, not to the lengths that it states. The bytes must outlive the Pickle.
class Pickle {
 public:
  enum class Kind : std::uint8_t { kNone, kBool, kInt, kHuge, kFloat, kText, kTuple, kList, kDict };

  /// Gets the elements that one opcode adds to a list, and says whether it takes them. Then the list does not get them,
  /// and the memory of their values may serve others: of the values that it sees, only those with ids below `lasting`
  /// stay what they are.
  using Taker =
      std::function<bool(const Pickle& pickle, PickleId list, std::span<const PickleId> elements, PickleId lasting)>;

  /// @param taker  by it, a list of any length needs no memory; it must not be used with a pickle that shares, behind a
  ///               list, what was within a taken element: such a pickle is refused
  /// @throws InputError  "byte 812: opcode REDUCE ('R') needs more than plain values; a snapshot holds only these",
  ///                     "byte 812: opcode 0xff, which this tidepool does not read",
  ///                     "byte 812: the pickle ends within BININT; ..."
  explicit Pickle(std::string_view bytes, const Taker& taker = {});

  PickleId root() const { return root_; }
  /// For a taker: how many of the bytes have been read.
  std::size_t bytes_read() const { return bytes_read_; }
  std::size_t size_in_bytes() const { return bytes_.size(); }
  Kind kind(PickleId id) const { return values_[id].kind; }
  /// The value of a kBool or kInt; of a kHuge (more than 64 bits with sign), the nearest that fits.
  std::int64_t number(PickleId id) const { return static_cast<std::int64_t>(values_[id].payload); }
  /// The value of a kFloat.
  double real(PickleId id) const;
  /// kText: a part of the bytes. Python's byte strings are texts too.
  std::string_view text(PickleId id) const { return bytes_.substr(values_[id].payload, values_[id].count); }
  /// kTuple, kList: number of elements; kDict: of keys and values together.
  std::size_t size(PickleId id) const { return values_[id].count; }

  /// Calls visit(element) for each element of a tuple or list, in order.
  template <class Visit>
  void each(PickleId id, Visit visit) const {
    for (std::uint32_t c = first_chunk(id); c != kNone; c = chunks_[c].next)
      for (std::uint32_t i = chunks_[c].first; i < chunks_[c].last; ++i) visit(items_[i]);
  }
  /// Calls visit(key, value) for each entry of a dict, in order; a key that is set twice comes twice.
  template <class Visit>
  void each_entry(PickleId id, Visit visit) const {
    for (std::uint32_t c = first_chunk(id); c != kNone; c = chunks_[c].next)
      for (std::uint32_t i = chunks_[c].first; i + 1 < chunks_[c].last; i += 2) visit(items_[i], items_[i + 1]);
  }

 private:
  friend class PickleMachine;
  static constexpr std::uint32_t kNone = 0xffffffff;

  /// `payload`: a number, the bits of a float, the position of a text, or (first chunk << 32 | last chunk).
  struct Value {
    Kind kind = Kind::kNone;
    std::uint32_t count = 0;
    std::uint64_t payload = 0;
  };
  /// Elements that were added to a container together, and the next chunk of that container.
  struct Chunk {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t next = kNone;
  };

  std::uint32_t first_chunk(PickleId id) const {
    return values_[id].count == 0 ? kNone : static_cast<std::uint32_t>(values_[id].payload >> 32);
  }

  std::string_view bytes_;
  std::size_t bytes_read_ = 0;
  std::vector<Value> values_;
  std::vector<Chunk> chunks_;
  std::vector<PickleId> items_;
  PickleId root_ = 0;
};

}  // namespace tidepool
