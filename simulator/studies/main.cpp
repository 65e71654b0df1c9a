// The program: lists the subcommands, runs one, turns errors into exit codes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "simulator/registry.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/nearest.hpp"
#include "traces/base/text.hpp"

namespace {

int word_count = 0;  // of the command line
char** words = nullptr;

/// Commands in the order of a person's questions. All others are listed behind these.
const std::vector<std::pair<const char*, std::vector<std::string>>> kDaily{
    {"What does the job do", {"record", "import", "info"}},
    {"Does it fit, and what holds the memory", {"fit", "explain", "diff", "advise"}},
    {"What would another policy cost", {"simulate", "sweep", "report"}},
    {"Is that true on real memory", {"validate", "run"}}};

/// A command or an option of a command that has another name since this release. The old one goes with the next.
struct Renamed {
  std::string command, option;  ///< option: "" for a command
  std::vector<std::string> now;
};
const std::vector<Renamed> kRenamed{{"merge", "", {"sweep"}},
                                    {"resume", "", {"sweep"}},
                                    {"compare", "", {"diff"}},
                                    {"structure", "", {"info", "--structure"}},
                                    {"view", "", {"simulate", "--view"}},
                                    {"simulate", "--explain", {"--decisions"}}};

/// Commands that are gone, and what answers their question.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kGone{
    {{"autoswap", "simulate --policy 'autoswap(score=doa)'"}, {"optimum", "bound, whose bounds hold for every plan"}}};

/// Puts new names in the place of old ones, and says so.
std::vector<std::string> with_new_names(std::vector<std::string> line) {
  if (line.size() < 2) return line;
  for (const Renamed& each : kRenamed) {
    if (line[1] != each.command) continue;
    const auto end = std::find(line.begin(), line.end(), "--");
    const auto old = each.option.empty() ? line.begin() + 1 : std::find(line.begin(), end, each.option);
    if (old == end) continue;
    tidepool::say("tidepool: '{}' is '{}' now; the old name goes with the next release\n", *old,
                  fmt::join(each.now, " "));
    line.insert(line.erase(old), each.now.begin(), each.now.end());
    break;
  }
  return line;
}

/// Whether a command line asks for the help of most options. --help-all becomes --help, and asks for that of all.
bool asks_for_most(std::vector<std::string>& line) {
  const auto end = std::find(line.begin(), line.end(), "--"), all = std::find(line.begin(), end, "--help-all");
  if (all == end) return std::find(line.begin(), end, "--help") != end || std::find(line.begin(), end, "-h") != end;
  *all = "--help";
  return false;
}

/// All commands, those of kDaily first, each with its group in the help.
std::vector<std::pair<const tidepool::Command*, std::string>> grouped_commands() {
  std::vector<std::pair<const tidepool::Command*, std::string>> sorted;
  std::vector<const tidepool::Command*> more;
  for (const tidepool::Command& command : tidepool::all_commands()) more.push_back(&command);
  for (const auto& [question, names] : kDaily)
    for (const std::string& name : names) {
      const auto found = std::find_if(more.begin(), more.end(), [&](const auto* each) { return each->name == name; });
      if (found == more.end()) continue;
      sorted.emplace_back(*found, question);
      more.erase(found);
    }
  for (const tidepool::Command* command : more) sorted.emplace_back(command, "More");
  return sorted;
}

/// Adds a command to the program. With `most`, its options that are seldom used are hidden; then they have no name.
std::function<int()> add_command(CLI::App& sub, const tidepool::Command& command, std::size_t behind_dashes,
                                 bool most) {
  sub.fallthrough();  // options of the program may also stand behind the subcommand
  std::function<int()> run = command.declare(tidepool::CommandLine{sub, behind_dashes});
  if (!most || command.seldom.empty()) return run;
  for (const std::string& name : command.seldom) sub.get_option(name)->group("");
  sub.footer(fmt::format("{} more: tidepool {} --help-all",
                         tidepool::counted(static_cast<std::int64_t>(command.seldom.size()), "option"), command.name));
  return run;
}

/// Loads the plug-ins named in the environment, then those of the command line.
void load_plugins(const std::vector<std::string>& given) {
  if (const char* paths = std::getenv("TIDEPOOL_PLUGINS"))
    for (const std::string& path : tidepool::split_list(paths, ':'))
      if (!path.empty()) tidepool::load_plugin(path);
  for (const std::string& path : given) tidepool::load_plugin(path);
}

/// Sets the limit on the decompressed size of an input, for this process and those that it starts; "" leaves the limit
/// as it is.
void limit_input(const std::string& most) {
  if (most.empty()) return;
  try {
    static_cast<void>(tidepool::parse_bytes(most));
  } catch (const tidepool::InputError& error) {
    throw error.at("--max-input");
  }
  ::setenv(tidepool::kMaxInputVariable, most.c_str(), 1);
}

/// @throws InputError  if the first word is neither an option nor a command
void require_command(const char* word) {
  std::vector<std::string> known;
  for (const tidepool::Command& command : tidepool::all_commands()) known.push_back(command.name);
  for (const auto& [name, instead] : kGone)
    if (word == name)
      throw tidepool::InputError{fmt::format("no command named '{}' any more; expected {}", name, instead)};
  if (*word != '-' && std::find(known.begin(), known.end(), word) == known.end())
    throw tidepool::InputError{tidepool::unknown_name("command", word, known)};
}

/// The first option among the words of the command line that neither the command nor the program has.
/// @return "no option named '--polcy', did you mean '--policy'? (tidepool simulate --help lists them)"; "" if none is
std::string unknown_option(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> known;
  std::string name = app.get_name();
  const auto note_options = [&](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options())
      for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
  };
  note_options(app);
  for (const CLI::App* command : app.get_subcommands()) {
    note_options(*command);
    name += " " + command->get_name();
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word{argv[i], std::strcspn(argv[i], "=")};
    if (word == "--") break;
    if (!word.starts_with("--") || std::find(known.begin(), known.end(), word) != known.end()) continue;
    const std::string near = tidepool::nearest(word, known);
    return fmt::format("no option named '{}'{} ({} --help lists them)", word,
                       near.empty() ? "" : fmt::format(", did you mean '{}'?", near), name);
  }
  return "";
}

/// The message about a command line that the parser refuses: "'b' is not expected (tidepool info --help lists all
/// arguments)", or a message of the parser with the same reference.
std::string refusal_of(const CLI::App& app, const CLI::ParseError& error) {
  if (app.get_subcommands().empty() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
    return "no command; expected one (tidepool --help lists them)";
  std::string what = error.what(), name = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) name += " " + command->get_name();
  std::vector<std::string> extras = app.remaining(true);
  std::erase(extras, "--");  // the parser keeps it, and it is no argument
  if (!extras.empty())
    what = fmt::format("'{}' {} not expected", fmt::join(extras, "', '"), extras.size() == 1 ? "is" : "are");
  return fmt::format("{} ({} --help lists all arguments)", what, name);
}

/// Number of words behind the first "--".
std::size_t words_behind_dashes(int argc, char** argv) {
  char** const end = argv + argc;
  char** const dashes = std::find_if(argv, end, [](const char* word) { return std::strcmp(word, "--") == 0; });
  return dashes == end ? 0 : static_cast<std::size_t>(end - dashes) - 1;
}

/// Opens a substitute for a standard stream that the caller has closed. Reading from the substitute, or writing to it,
/// fails. Without it, the next opened file would get the stream's number. In programs that this one starts, the stream
/// is closed, as it was here.
void occupy_closed_streams() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) == -1)
      static_cast<void>(open("/dev/null", O_CLOEXEC | (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY)));
}

/// @throws std::system_error  if a part of the output could not be written; printing throws the same error
void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw std::system_error{errno, std::generic_category()};
}

/// The text of an error; "stdout: not all of it could be written: No space left on device" if printing failed.
std::string explain(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (!system || std::ferror(stdout) == 0) return error.what();
  return fmt::format("stdout: not all of it could be written: {}", std::strerror(system->code().value()));
}

/// "tidepool: gpt2.tide: takes more memory than there is", with the first argument that names a file. Takes no memory.
void say_out_of_memory() {
  char** const file = std::find_if(words + 2, words + std::max(word_count, 2),
                                   [](const char* word) { return access(word, F_OK) == 0; });
  const bool found = file < words + word_count;
  std::fprintf(stderr, "tidepool: %s%stakes more memory than there is\n", found ? *file : "", found ? ": " : "");
}

std::terminate_handler end_otherwise = nullptr;

/// The terminate handler. Destructors of nlohmann's JSON and noexcept functions of the standard library allocate
/// memory; if there is none left, the program ends here.
[[noreturn]] void end() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    say_out_of_memory();
    std::_Exit(1);
  } catch (...) {  // end_otherwise() prints it
  }
  end_otherwise();
  std::abort();
}

/// Whether a command has a job, whose output is not to be mixed with words of the command.
bool has_job(std::string_view command) { return command == "record" || command == "run"; }

/// Whether a command shows its own progress on a terminal.
bool shows_progress(std::string_view command) {
  constexpr std::array<std::string_view, 4> kOwn{"fit", "simulate", "sweep", "advise"};
  return std::find(kOwn.begin(), kOwn.end(), command) != kOwn.end();
}

/// Runs the command that the command line names. @return its exit code
int run_command(int argc, char** argv) {
  CLI::App app{"What would this training step cost, in bytes and in time, under another memory policy?", "tidepool"};
  app.set_version_flag("--version", fmt::format("tidepool {}", tidepool::build_version()));
  app.require_subcommand(1);
  std::vector<std::string> plugins;
  app.add_option("--plugin", plugins, "load pools and policies from a shared library (also: TIDEPOOL_PLUGINS=A:B)")
      ->allow_extra_args(false);
  std::string max_input;
  app.add_option("--max-input", max_input,
                 fmt::format("most bytes of a compressed input after decompression ({} unless given; also: {})",
                             to_text(tidepool::kMostDecompressed), tidepool::kMaxInputVariable));
  std::function<int()> chosen;
  std::vector<std::string> given = with_new_names({argv, argv + argc});
  const bool most = asks_for_most(given);
  const std::size_t behind_dashes = words_behind_dashes(argc, argv);
  for (const auto& [command, group] : grouped_commands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->group(group);
    sub->callback([&chosen, run = add_command(*sub, *command, behind_dashes, most)] { chosen = run; });
  }
  try {
    if (given.size() > 1) require_command(given[1].c_str());
    app.parse(std::vector<std::string>{given.rbegin(), given.rend() - 1});  // the parser takes words from the end
  } catch (const CLI::ExtrasError& error) {
    const std::string unknown = unknown_option(app, argc, argv);
    throw tidepool::InputError{unknown.empty() ? refusal_of(app, error) : unknown};
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    throw tidepool::InputError{refusal_of(app, error)};
  }
  limit_input(max_input);
  load_plugins(plugins);
  const std::string name = app.get_subcommands().front()->get_name();
  tidepool::end_with_a_word(name);
  std::optional<tidepool::StillWorking> still_working;
  if (!has_job(name)) still_working.emplace(name, !shows_progress(name));
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  word_count = argc;
  words = argv;
  end_otherwise = std::set_terminate(end);
  occupy_closed_streams();
  try {
    const int code = run_command(argc, argv);
    finish_output();
    return code;
  } catch (const tidepool::InputError& error) {
    tidepool::say("tidepool: {}\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    say_out_of_memory();
    return 1;
  } catch (const std::exception& error) {
    tidepool::say("tidepool: {}\n", explain(error));
    return 1;
  }
}
