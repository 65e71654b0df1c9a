// Words of memory that several lanes may touch at once when a plan or a backend is wrong: every access is atomic, so
// that a race corrupts content, which is found, and nothing else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "validator/fingerprint.hpp"

namespace tidepool {

inline constexpr std::uint64_t kCleared = 0xdeadbeefdeadbeef;  ///< what cleared memory holds

inline std::uint64_t load(std::uint64_t& word) { return std::atomic_ref{word}.load(std::memory_order_relaxed); }
inline void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref{word}.store(value, std::memory_order_relaxed);
}

inline void fill_words(std::uint64_t* words, std::size_t count, std::uint64_t content) {
  for (std::size_t i = 0; i < count; ++i) store(words[i], word_of(content, i));
}

inline void clear_words(std::uint64_t* words, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) store(words[i], kCleared);
}

inline void copy_words(std::uint64_t* to, std::uint64_t* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) store(to[i], load(from[i]));
}

struct Freed {
  void operator()(std::uint64_t* words) const { std::free(words); }
};
using WordArray = std::unique_ptr<std::uint64_t[], Freed>;

/// Words that are 0 and take memory only once they are written.
inline WordArray zero_words(std::size_t count) {
  auto* const words = static_cast<std::uint64_t*>(std::calloc(count + 1, sizeof(std::uint64_t)));
  if (words == nullptr) throw std::bad_alloc{};
  return WordArray{words};
}

}  // namespace tidepool
