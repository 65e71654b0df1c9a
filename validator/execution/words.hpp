// Words of memory that several lanes may touch at once if a plan or a backend is wrong. Every access is atomic, so that
// a race only corrupts content, and comparing the content finds it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "validator/execution/mix.hpp"

namespace tidepool {

inline constexpr std::int64_t kWordBytes = sizeof(std::uint64_t);

inline std::uint64_t load(std::uint64_t& word) { return std::atomic_ref{word}.load(std::memory_order_relaxed); }
inline void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref{word}.store(value, std::memory_order_relaxed);
}

/// A content of `count` words, repeated over the words (at least as many) that stand for its bytes in one place.
struct Content {
  std::uint64_t* words = nullptr;
  std::size_t count = 0;
  std::size_t covered = 0;

  /// Calls visit(word, index in the content) for all of them.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t first = 0; first < covered; first += count)
      for (std::size_t i = 0; i < count && first + i < covered; ++i) visit(words[first + i], i);
  }
};

inline void fill_words(const Content& content, std::uint64_t number) {
  content.for_each([number](std::uint64_t& word, std::size_t i) { store(word, word_of(number, i)); });
}

inline void clear_words(std::uint64_t* words, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) store(words[i], kCleared);
}

/// Copies a content to another place. A wrong word in any of its repetitions makes the copy wrong.
inline void copy_words(const Content& to, const Content& from) {
  for (std::size_t i = 0; i < to.count; ++i) {
    std::uint64_t value = load(from.words[i]);
    for (std::size_t again = i + from.count; again < from.covered; again += from.count)
      if (const std::uint64_t other = load(from.words[again]); other != value) value = mix(value, other);
    for (std::size_t at = i; at < to.covered; at += to.count) store(to.words[at], value);
  }
}

struct Freed {
  void operator()(std::uint64_t* words) const { std::free(words); }
};
using WordArray = std::unique_ptr<std::uint64_t[], Freed>;

/// Words that begin as 0. They take memory only once they are written.
inline WordArray zero_words(std::size_t count) {
  auto* const words = static_cast<std::uint64_t*>(std::calloc(count + 1, sizeof(std::uint64_t)));
  if (words == nullptr) throw std::bad_alloc{};
  return WordArray{words};
}

}  // namespace tidepool
