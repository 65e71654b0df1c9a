// Errors in a user's input. Outcomes of a run (out of memory, infeasible, time limit) are not errors.
#pragma once

#include <stdexcept>
#include <string>

namespace tidepool {

/// The user's input is wrong. what() reads "file:line: what we saw; what we expected" once the position is known.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  /// The same error with a position in front, as in at("resnet50.jsonl:812").
  InputError at(const std::string& position) const { return InputError{position + ": " + what()}; }
};

}  // namespace tidepool
