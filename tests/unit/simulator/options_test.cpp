#include "simulator/options.hpp"

#include "tests/catch.hpp"
#include "traces/base/error.hpp"

namespace tidepool::options_test {

namespace {

const std::vector<OptionInfo> kDeclared{{"window", "2MiB", "bytes", ""},
                                        {"wait", "10us", "ns", ""},
                                        {"threshold", "0.5", "number", ""},
                                        {"partition", "on", "on/off", ""},
                                        {"fit", "best", "first|best", ""}};

Options given(const std::map<std::string, std::string>& values) { return Options{"coop", kDeclared, values, 7}; }

}  // namespace

TEST_CASE("options have their defaults until they are given") {
  const Options defaults = given({});
  CHECK(defaults.bytes("window") == 2_MiB);
  CHECK(defaults.nanos("wait") == 10_us);
  CHECK(defaults.number("threshold") == 0.5);
  CHECK(defaults.flag("partition"));
  CHECK(defaults.word("fit") == "best");
  CHECK(defaults.seed() == 7);
  CHECK(defaults.text().empty());

  const Options changed = given({{"window", "1kB"}, {"wait", "3s"}, {"threshold", "-2"}, {"fit", "first"}});
  CHECK(changed.bytes("window") == 1000_B);
  CHECK(changed.nanos("wait") == 3'000_ms);
  CHECK(changed.number("threshold") == -2);
  CHECK(changed.word("fit") == "first");
}

TEST_CASE("the text of options has those that differ from their defaults, in the order of declaration") {
  CHECK(given({{"partition", "off"}, {"window", "4MiB"}, {"fit", "best"}}).text() == "window=4MiB,partition=off");
}

TEST_CASE("options refuse unknown names and values, and name the expected ones") {
  CHECK_THROWS_WITH(given({{"treshold", "1"}}),
                    "coop: unknown option 'treshold', did you mean 'threshold'? (tidepool policies coop lists them)");
  CHECK_THROWS_WITH(given({{"colour", "1"}}), "coop: unknown option 'colour' (tidepool policies coop lists them)");
  CHECK_THROWS_WITH(given({{"partition", "yes"}}), "coop: option 'partition' is 'yes'; expected on or off");
  CHECK_THROWS_WITH(given({{"threshold", "1x"}}), "coop: option 'threshold' is '1x'; expected a number");
  CHECK_THROWS_WITH(given({{"threshold", "inf"}}), "coop: option 'threshold' is 'inf'; expected a number");
  CHECK_THROWS_WITH(given({{"fit", "worst"}}), "coop: option 'fit' is 'worst'; expected first, best");
  CHECK_THROWS_WITH(given({{"window", "2"}}),
                    "coop: option 'window': '2' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, "
                    "TiB, K, M, G or T, as in 512MiB");
  CHECK_THROWS_WITH(
      given({{"wait", "2"}}),
      "coop: option 'wait': '2' is not a duration; expected a whole number and ns, us, ms or s, as in 10us");
}

TEST_CASE("a spec is a name with options in parentheses") {
  CHECK(Spec("dtr").name == "dtr");
  CHECK(Spec("dtr").options.empty());
  CHECK(Spec("dtr()").options.empty());
  const Spec spec{" coop( window=1kB , partition = off)"};
  CHECK(spec.name == "coop");
  CHECK(spec.options == std::map<std::string, std::string>{{"window", "1kB"}, {"partition", "off"}});
}

TEST_CASE("a malformed spec is refused") {
  for (const std::string text : {"coop(window", "coop(window=1))", "coop(window)", "(a=1)", "", "a=1", "a(b=1)c",
                                 "a(=1)", "a(b=1,)", "a(b=(1))", ")", "a)"})
    CHECK_THROWS_WITH(Spec(text), "'" + text + "': expected name(key=value,...)");
  CHECK_THROWS_WITH(Spec("coop(a=1,a=2)"), "'coop(a=1,a=2)': option 'a' is given twice");
}

TEST_CASE("a chain has the policies between the plus signs, each once") {
  CHECK(PolicyChain{"dtr(a=1) + coop"}.policies == std::vector<Spec>{"dtr(a=1)", "coop"});
  for (const std::string twice : {"dtr+dtr", "dtr+dtr(a=1)", "dtr(a=1)+coop+ dtr"})
    CHECK_THROWS_WITH(PolicyChain(twice),
                      "'" + twice + "': policy 'dtr' is in the chain twice; expected each policy once");
}

TEST_CASE("a list splits at separators outside parentheses") {
  CHECK(split_list("a,b(c=1,d=2), e") == std::vector<std::string>{"a", "b(c=1,d=2)", "e"});
  CHECK(split_list("a(b=[1:2,3:4]),[5,6]") == std::vector<std::string>{"a(b=[1:2,3:4])", "[5,6]"});
  CHECK(split_list("a(x=1)+b", '+') == std::vector<std::string>{"a(x=1)", "b"});
  CHECK(split_list("a,,b") == std::vector<std::string>{"a", "", "b"});
  CHECK(split_list("").empty());
}

TEST_CASE("the only word that begins as a shorter one is suggested before others") {
  const std::vector<std::string> known{"h100-80gb", "h200", "a100-80gb", "a100-40gb"};
  CHECK(nearest("h100", known) == "h100-80gb");  // h200 has one other digit
  CHECK(nearest("H100", known) == "h100-80gb");
  CHECK(nearest("a100", known).empty());  // there are two
  CHECK(nearest("h1", known).empty());    // two letters may begin anything
}

TEST_CASE("the nearest word is suggested only if it has at most one mistake in three letters") {
  const std::vector<std::string> known{"dtr", "gap-swap", "lru-swap", "none"};
  CHECK(nearest("gapswap", known) == "gap-swap");
  CHECK(nearest("DTR", known) == "dtr");
  CHECK(nearest("drt", known) == "dtr");  // two exchanged neighbours are one mistake
  CHECK(nearest("nnoo", known).empty());  // two mistakes in four letters are too many
  CHECK(nearest("swp", known).empty());
  CHECK(nearest("", known).empty());
  CHECK(nearest(std::string(1'000'000, 'a'), known).empty());
}

}  // namespace tidepool::options_test
