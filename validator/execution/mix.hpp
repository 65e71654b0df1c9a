// Arithmetic of contents. It is the same on the host and in GPU kernels, so it needs only integers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidepool {

/// One well mixed number from two; not symmetric.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9fb21c651e98df25 + (b ^ 0xa0761d6478bd642f);
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93;
  return z ^ (z >> 32);
}

/// Word `i` of a content. Two words of one content, or of two contents, are equal only by chance (2^-64).
constexpr std::uint64_t word_of(std::uint64_t content, std::size_t i) {
  std::uint64_t z = content + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93;
  return z ^ (z >> 29);
}

/// The summand of the word at position `i` in the number that identifies a wrong content. The sum over all words does
/// not depend on their order, so many threads may add to it.
constexpr std::uint64_t part_of_wrong(std::uint64_t word, std::size_t i) { return mix(word, i); }

/// The first value of the content of an op's outputs. Then follows content = mix(content, input) for each use that
/// reads a version and is no view, in use order, so that outputs depend on every input that may be wrong.
/// @param draw   the number that a random op drew from the generator, 0 for other ops
/// @param batch  the content that a source brought, 0 for other ops
constexpr std::uint64_t op_seed(std::uint64_t op, std::uint64_t draw, std::uint64_t batch) {
  return mix(mix(op, draw), batch);
}

/// Content of one output of an op.
constexpr std::uint64_t output_content(std::uint64_t op, std::uint64_t version) { return mix(op, version); }

inline constexpr std::uint64_t kCleared = 0xdeadbeefdeadbeef;  ///< the word in cleared memory

}  // namespace tidepool
