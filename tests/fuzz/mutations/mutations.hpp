// Mutations that keep the form of a file, so that fuzzing reaches the code that reads the content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace tidepool::fuzz {

using Random = std::minstd_rand;

/// Mutates a file of one JSON value: a value inside it is replaced, removed, doubled or swapped with another. Of any
/// other text, a line is removed, doubled, swapped with another or, if it is JSON, mutated in the same way. The result
/// may be the same text.
std::string mutate_json(std::string_view text, Random& random);

/// Mutates a pickle: an opcode is removed, doubled, swapped with another, or gets another argument.
std::string mutate_pickle(std::string_view bytes, Random& random);

/// Mutates a database: values are changed, rows are removed or doubled, a column is removed or renamed, or a table is
/// removed. "" for less than 100 bytes, the size of a header. Other bytes that are no database come back, with the two
/// bytes of the format's versions set to 1.
std::string mutate_sqlite(std::string_view bytes, Random& random);

/// The body of an LLVMFuzzerCustomMutator. Half of the calls, chosen at random, mutate with `mutate`, one of the
/// functions above; the others use libFuzzer's own mutations. These are also used if the mutant is empty or longer than
/// `most`.
template <class Mutate>
std::size_t mutate_in_place(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed, Mutate mutate) {
  Random random{seed};
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string mutant = mutate(std::string_view{reinterpret_cast<const char*>(data), size}, random);
  if (mutant.empty() || mutant.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, mutant.data(), mutant.size());
  return mutant.size();
}

}  // namespace tidepool::fuzz
