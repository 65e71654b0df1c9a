#include "simulator/registry.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <boost/filesystem/operations.hpp>
#include <cctype>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "simulator/engine/planned_pool.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

struct Registry {
  std::deque<PoolInfo> pools;  // a deque, so that pointers to elements stay valid when more are added
  std::deque<PolicyInfo> policies;
  std::string foreign_version;  // of the last registration built for another version; "": there was none
};

Registry& registry() {
  static Registry all;
  return all;
}

/// Whether a registration was built for this version, so that it may be read. Notes another version.
bool is_readable(std::string_view built_for) {
  // An exception here would end the program: this code runs before main() or while a shared library is loaded.
  if (built_for == TIDEPOOL_INTERFACE) return true;
  registry().foreign_version = built_for;
  return false;
}

template <class Info>
std::vector<const Info*> sorted(const std::deque<Info>& infos) {
  std::vector<const Info*> all;
  for (const Info& info : infos) all.push_back(&info);
  std::stable_sort(all.begin(), all.end(), [](const Info* a, const Info* b) { return a->name < b->name; });
  return all;
}

template <class Info>
const Info& find(const std::deque<Info>& infos, std::string_view what, const std::string& name) {
  const auto found = std::find_if(infos.begin(), infos.end(), [&](const Info& info) { return info.name == name; });
  if (found != infos.end()) return *found;
  std::vector<std::string> known;
  for (const Info* info : sorted(infos)) known.push_back(info->name);
  throw InputError{unknown_name(what, name, known)};
}

/// Refuses a name that more than one of `infos` has.
template <class Info>
void require_unique(const std::deque<Info>& infos, std::string_view what, const std::string& path) {
  const std::vector<const Info*> all = sorted(infos);
  const auto twice =
      std::adjacent_find(all.begin(), all.end(), [](const Info* a, const Info* b) { return a->name == b->name; });
  if (twice != all.end())
    throw InputError{fmt::format("{}: registers {} '{}', which is known already; expected a name of its own", path,
                                 what, (*twice)->name)};
}

/// The name of pools and policies is what specs and databases call them.
bool is_name(std::string_view text) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

/// Refuses registrations, from number `first` on, that no run could use.
template <class Info>
void require_usable(const std::deque<Info>& infos, std::size_t first, std::string_view what, const std::string& path) {
  for (std::size_t i = first; i < infos.size(); ++i) {
    if (!is_name(infos[i].name))
      throw InputError{
          fmt::format("{}: registers {} '{}'; expected a name of letters, digits, - and _", path, what, infos[i].name)};
    if (!infos[i].make)
      throw InputError{fmt::format("{}: registers {} '{}' without make; expected a function that makes one", path, what,
                                   infos[i].name)};
  }
}

/// A function that makes the same, and throws if that is nothing.
template <class Made>
std::function<std::unique_ptr<Made>(const Options&)> never_null(
    std::function<std::unique_ptr<Made>(const Options&)> make, const std::string& name) {
  if (!make) return make;
  return [make = std::move(make), name](const Options& options) {
    std::unique_ptr<Made> made = make(options);
    if (!made) throw std::logic_error{fmt::format("'{}' was registered with a function that makes nothing", name)};
    return made;
  };
}

}  // namespace

RegisterPool::RegisterPool(PoolInfo info, std::string_view built_for) {
  if (!is_readable(built_for)) return;
  info.plan = never_null(std::move(info.plan), info.name);
  info.make = never_null(std::move(info.make), info.name);
  if (info.plan && !info.make)
    info.make = [name = info.name, plan = info.plan](const Options& options) {
      return std::make_unique<PlannedPool>(name, plan(options), options);
    };
  registry().pools.push_back(std::move(info));
}
RegisterPolicy::RegisterPolicy(PolicyInfo info, std::string_view built_for) {
  if (!is_readable(built_for)) return;
  info.make = never_null(std::move(info.make), info.name);
  registry().policies.push_back(std::move(info));
}

std::vector<const PoolInfo*> all_pools() { return sorted(registry().pools); }
std::vector<const PolicyInfo*> all_policies() { return sorted(registry().policies); }

const PoolInfo& find_pool(const std::string& name) { return find(registry().pools, "pool", name); }
const PolicyInfo& find_policy(const std::string& name) { return find(registry().policies, "policy", name); }

namespace {

/// Appends `part`. If `text` is not empty, a separator comes before it.
void join(std::string& text, char separator, const std::string& part) {
  if (!text.empty()) text += separator;
  text += part;
}

/// @throws InputError  with `path` and the message of an exception that left the library's own start
boost::dll::shared_library open_library(const boost::filesystem::path& file, const std::string& path) try {
  // dlopen() is declared to throw nothing, so that callers may lack what unwinding needs; but it runs the library's
  // code.
  void* (*const volatile open)(const char*, int) = &dlopen;
  const std::unique_ptr<void, int (*)(void*)> started{open(file.c_str(), RTLD_NOW | RTLD_LOCAL), &dlclose};
  return boost::dll::shared_library{file, boost::dll::load_mode::rtld_now};
} catch (const boost::system::system_error&) {
  throw;
} catch (const std::exception& thrown) {
  throw InputError{fmt::format("{}: threw an exception while it was loaded: {}", path, thrown.what())};
}

}  // namespace

SpecNames names_of(const RunSpec& spec) {
  SpecNames names;
  const auto add = [&](const auto& info, const Spec& one, std::string& name, char separator) {
    join(name, separator, info.name);
    const std::string given = Options{info.name, info.options, one.options}.text();
    if (!given.empty()) join(names.options, ' ', fmt::format("{}({})", info.name, given));
  };
  add(find_pool(spec.pool.name), spec.pool, names.pool, ' ');
  for (const Spec& policy : spec.policy.policies) add(find_policy(policy.name), policy, names.policy, '+');
  return names;
}

std::vector<std::string> files_of(const RunSpec& spec) {
  std::vector<std::string> files;
  const auto add = [&](const std::vector<OptionInfo>& declared, const Spec& part) {
    for (const OptionInfo& option : declared)
      if (const auto given = part.options.find(option.name);
          option.unit == "file" && given != part.options.end() && !given->second.empty())
        files.push_back(given->second);
  };
  add(find_pool(spec.pool.name).options, spec.pool);
  for (const Spec& policy : spec.policy.policies) add(find_policy(policy.name).options, policy);
  return files;
}

void load_plugin(const std::string& path) {
  boost::system::error_code error;
  const boost::filesystem::path file = boost::filesystem::canonical(path, error);
  if (error || !boost::filesystem::is_regular_file(file))
    throw InputError{fmt::format("{}: no such file; expected a shared library with pools or policies", path)};
  // Never destroyed: while static objects are destroyed, registrations are still used and need the libraries' code.
  struct Loaded {
    boost::dll::shared_library library;
    std::string refusal;  // "": its registrations are used
  };
  static auto& loaded = *new std::map<boost::filesystem::path, Loaded>;
  if (const auto known = loaded.find(file); known != loaded.end()) {
    if (!known->second.refusal.empty()) throw InputError{known->second.refusal};
    return;
  }

  Registry& all = registry();
  const std::size_t pools = all.pools.size(), policies = all.policies.size();
  all.foreign_version.clear();
  try {
    loaded.emplace(file, Loaded{open_library(file, path), ""});
    if (!all.foreign_version.empty())
      throw InputError{fmt::format("{}: built against tidepool {}; this is tidepool {}", path, all.foreign_version,
                                   TIDEPOOL_INTERFACE)};
    if (all.pools.size() == pools && all.policies.size() == policies)
      throw InputError{fmt::format(
          "{}: registers no pool and no policy; expected a namespace-scope RegisterPool or RegisterPolicy", path)};
    require_usable(all.pools, pools, "pool", path);
    require_usable(all.policies, policies, "policy", path);
    require_unique(all.pools, "pool", path);
    require_unique(all.policies, "policy", path);
  } catch (const boost::system::system_error& failure) {
    throw InputError{fmt::format("{}: cannot be loaded: {}", path, failure.what())};
  } catch (const InputError& refused) {
    loaded[file].refusal = refused.what();
    while (all.pools.size() > pools) all.pools.pop_back();
    while (all.policies.size() > policies) all.policies.pop_back();
    throw;
  }
}

}  // namespace tidepool
