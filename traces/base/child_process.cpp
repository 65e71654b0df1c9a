#include "traces/base/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

volatile sig_atomic_t child_id = 0;

/// The signals that go to the child: those that others send to a process, and not those of its own faults and children,
/// of its limits, and of a terminal's stops.
const std::vector<int>& passed_on() {
  static const std::vector<int> signals = [] {
    constexpr std::array kOwn{SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGSEGV,  SIGBUS, SIGFPE,
                              SIGILL,  SIGTRAP, SIGABRT, SIGSYS,  SIGPIPE, SIGXCPU, SIGXFSZ, SIGWINCH, SIGURG};
    std::vector<int> found;
    for (int signal = 1; signal <= SIGRTMAX; ++signal)
      if ((signal < 32 || signal >= SIGRTMIN) && std::find(kOwn.begin(), kOwn.end(), signal) == kOwn.end())
        found.push_back(signal);
    return found;
  }();
  return signals;
}

/// A signal of the terminal (from the kernel) goes to all processes of the foreground, so the child has it already.
extern "C" void pass_on(int signal, siginfo_t* info, void*) {
  const int before = errno;
  if (child_id > 0 && info->si_code != SI_KERNEL) kill(static_cast<pid_t>(child_id), signal);
  errno = before;
}

/// While an object of this class exists, this process goes on at signals, and passes them on to the child.
class SignalsToChild {
 public:
  SignalsToChild() : before_(passed_on().size()) {
    struct sigaction action = {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < before_.size(); ++i) sigaction(passed_on()[i], &action, &before_[i]);
  }
  ~SignalsToChild() {
    restore();
    child_id = 0;
  }
  SignalsToChild(const SignalsToChild&) = delete;
  SignalsToChild& operator=(const SignalsToChild&) = delete;

  void restore() const {
    for (std::size_t i = 0; i < before_.size(); ++i) sigaction(passed_on()[i], &before_[i], nullptr);
  }

 private:
  std::vector<struct sigaction> before_;
};

/// While an object of this class exists, the signals of passed_on() are blocked in this thread.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t waiting;
    sigemptyset(&waiting);
    for (const int signal : passed_on()) sigaddset(&waiting, signal);
    pthread_sigmask(SIG_BLOCK, &waiting, &before_);
  }
  ~SignalsWait() { restore(); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

  void restore() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_ = {};
};

/// The command in the form that execvp() takes: pointers into `command`, and a null pointer.
std::vector<char*> words_of(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

/// Makes `to` the same as `from`, an open descriptor. If `from` is a standard stream that the command does not get, the
/// command does not get `to` either.
void redirect(int from, int to) {
  const int flags = fcntl(from, F_GETFD);
  dup2(from, to);
  if (from <= STDERR_FILENO && flags > 0 && (flags & FD_CLOEXEC) != 0) fcntl(to, F_SETFD, FD_CLOEXEC);
}

/// Becomes the command; only returns, with errno, if it cannot.
void become(char* const* words, const ChildOptions& options) {
  for (const auto& [name, value] : options.environment)
    if (setenv(name.c_str(), value.c_str(), 1) != 0) return;
  if (options.output >= 0) redirect(options.output, STDOUT_FILENO);
  if (options.errors >= 0) redirect(options.errors, STDERR_FILENO);
  execvp(words[0], words);
}

/// A hint for the message about a command that cannot be run: "; expected a program, as in -- python3 train.py", if the
/// command is the name of a Python file; else "".
std::string hint(const std::string& word) {
  std::error_code unknown;
  if (!word.ends_with(".py") || !std::filesystem::is_regular_file(word, unknown)) return "";
  return fmt::format("; expected a program, as in -- python3 {}", word);
}

}  // namespace

pid_t start_child(const std::vector<std::string>& command, const ChildOptions& options) {
  std::array<int, 2> failure = {};  // pipe for the errno of a failed execvp(); a successful one closes it
  if (pipe2(failure.data(), O_CLOEXEC) != 0) throw InputError{fmt::format("no pipe: {}", std::strerror(errno))};
  const std::vector<char*> words = words_of(command);  // before fork(): the child must not throw
  const SignalsWait signals;
  const pid_t child = fork();
  if (child == 0) {
    if (options.in_child) options.in_child();
    signals.restore();
    become(words.data(), options);
    const int error = errno;
    [[maybe_unused]] const auto told = write(failure[1], &error, sizeof error);
    _exit(127);
  }
  int error = child < 0 ? errno : 0;
  close(failure[1]);
  if (child > 0) {
    if (options.begun) options.begun(child);
    int code = 0;
    if (read(failure[0], &code, sizeof code) == static_cast<ssize_t>(sizeof code)) {
      error = code;
      waitpid(child, nullptr, 0);
    }
  }
  close(failure[0]);
  if (error != 0)
    throw InputError{fmt::format("{}: cannot be run: {}{}", command.at(0), std::strerror(error), hint(command.at(0)))};
  return child;
}

int exit_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

int run_child(const std::vector<std::string>& command, ChildOptions options) {
  const SignalsToChild signals;
  options.in_child = [&] { signals.restore(); };
  options.begun = [](pid_t child) { child_id = child; };
  const pid_t child = start_child(command, options);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_status(status);
}

std::string how_it_ended(int status) {
  if (status <= 128) return fmt::format("ended with exit status {}", status);
  const char* const name = sigabbrev_np(status - 128);
  return name != nullptr ? fmt::format("was killed by SIG{}", name) : fmt::format("ended with exit status {}", status);
}

std::string prepended(const std::string& name, const std::string& added) {
  const char* before = std::getenv(name.c_str());
  return before && *before ? added + ":" + before : added;
}

std::string python_folder() {
  namespace fs = std::filesystem;
  if (const char* given = std::getenv("TIDEPOOL_PYTHON")) return given;
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {here / "python", here.parent_path() / "share/tidepool/python"})
    if (fs::exists(folder)) return folder.string();
  throw InputError{fmt::format("{}: no Python packages of this program; expected {} or TIDEPOOL_PYTHON to name them",
                               here.string(), (here / "python").string())};
}

}  // namespace tidepool
