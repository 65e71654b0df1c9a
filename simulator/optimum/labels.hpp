// The partial plans that the search has met, without those that another one is never worse than.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/optimum/state.hpp"

namespace tidepool::optimum {

/// States of partial plans, packed. Two states with the same content in the same places are compared by their times:
/// lanes are in order and nothing begins later because something else ended earlier, so of two states the one that is
/// later in no time is never worse. O(times) for each state in the same places.
///
/// Where the directions of the link slow each other down, only states that are equal but for a shift of all times are
/// compared.
class Labels {
 public:
  using Number = std::uint32_t;

  explicit Labels(const TinyStep& step) : step_{step} {}

  /// Adds a state and lets go of those that it is never worse than.
  /// @return  its number; nothing: one that is there is never worse
  std::optional<Number> add(const State& state);
  State state(Number number) const;
  /// Whether two have the same content in the same places, and the first is later in no time.
  bool never_worse(Number first, Number second) const;
  /// The times of a state that matter, each as what it is later than the earliest at which anything may begin.
  static std::vector<std::int64_t> offsets(const TinyStep& step, const State& state);
  /// Whether a better one has been added since.
  bool beaten(Number number) const { return labels_[number].beaten; }
  std::size_t size() const { return labels_.size(); }

 private:
  struct Label {
    std::uint64_t first = 0;           ///< in words_
    std::uint32_t key = 0, times = 0;  ///< how many words of each
    Number next = kNone;               ///< with the same key, or another of the same hash
    bool beaten = false;
  };
  static constexpr Number kNone = ~Number{0};

  void pack(const State& state);
  void pack_key(const State& state);
  void unpack_link(State& state, const std::int64_t* word) const;
  template <class Visit>
  static void for_each_time(const TinyStep& step, State& state, Visit visit);

  const TinyStep& step_;
  std::vector<std::int64_t> words_;
  std::vector<std::int64_t> packed_;  ///< what is being added: key_words_ words of key, then the times
  std::size_t key_words_ = 0;
  std::vector<Label> labels_;
  std::unordered_map<std::uint64_t, Number> heads_;  ///< by hash of the key
};

}  // namespace tidepool::optimum
