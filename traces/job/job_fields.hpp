// Values of a JSON object, each read strictly and named in messages by its path.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool {

class JobFields {
 public:
  using Json = nlohmann::json;

  /// @param object  must outlive this
  /// @param where   path of the object for messages, as in "ranks[1]"; "" = the whole file
  /// @throws InputError  "job.json: ranks[1]: unknown key 'strat_ns', did you mean 'start_ns'?; known: ..."
  JobFields(const Json& object, std::string file, std::string where, const std::vector<std::string>& known);

  bool has(const std::string& key) const { return object_.contains(key); }
  /// @throws InputError  "job.json: ranks[1].trace: 7; expected a text"
  std::string text(const std::string& key) const;
  /// A whole number of at least 0.
  /// @throws InputError  "job.json: ranks[1].start_ns: -5; expected a whole number from 0 to 2^60"
  std::int64_t whole(const std::string& key) const;
  /// A list of whole numbers from 0 to `count` - 1.
  /// @throws InputError  "job.json: groups[0].ranks[1]: 9; expected 0 to 7"
  std::vector<std::size_t> indices(const std::string& key, std::size_t count) const;
  /// The elements of a list of objects.
  std::vector<JobFields> objects(const std::string& key, const std::vector<std::string>& known) const;

  /// @throws InputError  "job.json: ranks[1].trace: " and the message
  [[noreturn]] void refuse(const std::string& key, const std::string& message) const;

 private:
  const Json& at(const std::string& key) const;
  std::string path(const std::string& key) const;

  const Json& object_;
  std::string file_, where_;
};

}  // namespace tidepool
