// The partial plans that the search has found, without those that another partial plan dominates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tests/oracle/state.hpp"

namespace tidepool::optimum {

/// States of partial plans, packed. Two states with the same content in the same places are compared by their times.
/// Lanes are in order, and nothing begins later because something else ended earlier; so a state with no later time
/// than another is never worse. O(times) for each state in the same places.
///
/// If the directions of the link slow each other down, only states that are equal except for a shift of all times are
/// compared.
class Labels {
 public:
  using Number = std::uint32_t;

  static constexpr std::int64_t kMostComparisons = 200;  ///< with other states, for each of the most states

  explicit Labels(const TinyStep& step) : step_{step} {}

  /// Adds a state, and removes those that it dominates.
  /// @return  its number; none if a known state dominates it
  std::optional<Number> add(const State& state);
  State state(Number number) const;
  /// Whether both have the same content in the same places, and no time of the first is later.
  bool never_worse(Number first, Number second) const;
  /// The times of a state that matter, each relative to the earliest time at which anything may begin. Then the free
  /// bytes that may be written only later: time and size of each piece.
  static std::vector<std::int64_t> offsets(const TinyStep& step, const State& state);
  /// Whether a state that dominates this one has been added later.
  bool beaten(Number number) const { return labels_[number].beaten; }
  std::size_t size() const { return labels_.size(); }
  /// Whether more than `most_states` states have been added, or, in a step where few are alike, the work for each grew
  /// beyond kMostComparisons.
  bool exceed(std::int64_t most_states) const {
    return static_cast<std::int64_t>(size()) > most_states || comparisons_ / kMostComparisons > most_states;
  }

 private:
  struct Label {
    std::uint64_t first = 0;           ///< index in words_
    std::uint32_t key = 0, times = 0;  ///< numbers of words
    std::uint32_t pieces = 0;          ///< likewise, of free bytes
    Number next = kNone;               ///< next label with the same key
    bool beaten = false;
  };
  static constexpr Number kNone = ~Number{0};

  void pack(const State& state);
  std::span<const std::int64_t> pieces_of(const Label& label) const {
    return {words_.data() + label.first + label.key + label.times, label.pieces};
  }
  void pack_key(const State& state);
  Number& head_of_packed();
  void unpack_link(State& state, const std::int64_t* word) const;
  template <class Visit>
  static void for_each_time(const TinyStep& step, State& state, Visit visit);

  const TinyStep& step_;
  std::vector<std::int64_t> words_;
  /// The state being added: key_words_ words of key, then the times, then piece_words_ words of free bytes.
  std::vector<std::int64_t> packed_;
  std::size_t key_words_ = 0, piece_words_ = 0;
  std::vector<Label> labels_;
  std::unordered_map<std::uint64_t, Number> heads_;  ///< of lists, by hash of their key
  std::int64_t comparisons_ = 0;
};

}  // namespace tidepool::optimum
