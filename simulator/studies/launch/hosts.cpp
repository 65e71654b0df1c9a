#include <fmt/format.h>

#include "simulator/studies/launch/farm.hpp"
#include "simulator/studies/launch/process.hpp"

namespace tidepool {
namespace {

class Hosts final : public Launcher {
 public:
  explicit Hosts(std::vector<std::string> hosts) : hosts_{std::move(hosts)} {}

  /// GNU parallel ends its tasks on Ctrl-C, and on the SIGTERM that it gets if `stop` becomes true.
  void run(const std::string& script, const std::string& log, std::span<const int> indices,
           const std::atomic<bool>& stop) override {
    std::vector<std::string> command{"parallel", "--will-cite", "--jobs", "1"};
    for (const std::string& host : hosts_) {
      command.push_back("--sshlogin");
      command.push_back(host);
    }
    const std::size_t percent = log.rfind('%');
    command.push_back(fmt::format("sh {} {{}} >>{}{{}}{} 2>&1", shell_word(script), shell_word(log.substr(0, percent)),
                                  shell_word(log.substr(percent + 1))));
    command.push_back(":::");
    for (const int index : indices) command.push_back(fmt::format("{}", index));
    run_process(command, false, &stop);
  }

 private:
  std::vector<std::string> hosts_;
};

}  // namespace

std::unique_ptr<Launcher> make_host_launcher(std::vector<std::string> hosts) {
  return std::make_unique<Hosts>(std::move(hosts));
}

}  // namespace tidepool
