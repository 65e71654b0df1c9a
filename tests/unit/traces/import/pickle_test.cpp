#include "traces/import/pickle.hpp"

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/pickle_writer.hpp"
#include "traces/base/error.hpp"

namespace tidepool::pickle_test {

using namespace std::string_literals;
using tests::Pickled;
using Kind = Pickle::Kind;

namespace {

std::string complaint(const std::string& bytes) {
  try {
    Pickle{bytes};
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// A value in Python's notation.
std::string show(const Pickle& pickle, PickleId id) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.size() > 1 ? ", " : "") + part; };
  switch (pickle.kind(id)) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return pickle.number(id) != 0 ? "True" : "False";
    case Kind::kInt:
      return std::to_string(pickle.number(id));
    case Kind::kHuge:
      return "huge " + std::to_string(pickle.number(id));
    case Kind::kFloat:
      return "float " + std::to_string(pickle.real(id));
    case Kind::kText:
      return "'" + std::string{pickle.text(id)} + "'";
    case Kind::kTuple:
    case Kind::kList:
      text = pickle.kind(id) == Kind::kList ? "[" : "(";
      pickle.each(id, [&](PickleId element) { add(show(pickle, element)); });
      return text + (pickle.kind(id) == Kind::kList ? "]" : ")");
    case Kind::kDict:
      text = "{";
      pickle.each_entry(id, [&](PickleId key, PickleId value) { add(show(pickle, key) + ": " + show(pickle, value)); });
      return text + "}";
  }
  return "?";
}

std::string read(const std::string& opcodes, int protocol = 4) {
  const std::string bytes = Pickled::raw(opcodes).pickle(protocol);
  const Pickle pickle{bytes};
  return show(pickle, pickle.root());
}

}  // namespace

TEST_CASE("a pickle's numbers keep their sign and width") {
  CHECK(read("K\xff"s) == "255");
  CHECK(read("M\xff\xff"s) == "65535");
  CHECK(read("J\xff\xff\xff\xff"s) == "-1");
  CHECK(read("\x8a\x00"s) == "0");
  CHECK(read("\x8a\x01\xff"s) == "-1");
  CHECK(read("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s) == std::to_string(std::numeric_limits<std::int64_t>::max()));
  CHECK(read("\x8b\x02\x00\x00\x00\x00\x80"s) == "-32768");
  CHECK(read("G\x3f\xf8\x00\x00\x00\x00\x00\x00"s) == "float 1.500000");
}

TEST_CASE("an integer of nine bytes is exact if it fits in 64 bits, and otherwise becomes the nearest that fits") {
  CHECK(read("\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00"s) == "1");
  CHECK(read("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"s) == "huge 9223372036854775807");
  CHECK(read("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff"s) == "huge -9223372036854775808");
}

TEST_CASE("a pickle's texts and byte strings of every width are texts") {
  CHECK(read("\x8c\x02hi"s) == "'hi'");
  CHECK(read("X\x02\x00\x00\x00hi"s) == "'hi'");
  CHECK(read("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"s) == "'hi'");
  CHECK(read("U\x02hi"s) == "'hi'");
  CHECK(read("T\x02\x00\x00\x00hi"s) == "'hi'");
  CHECK(read("C\x02hi"s) == "'hi'");
}

TEST_CASE("a pickle's containers have the items that are added at once and those that are added later") {
  CHECK(read("NN\x88\x87"s) == "(None, None, True)");
  CHECK(read(")") == "()");
  CHECK(read("](K\x01K\x02"s + "eK\x03"s + "a(K\x04" + "e") == "[1, 2, 3, 4]");
  CHECK(read("}(K\x01K\x02uK\x03K\x04s"s) == "{1: 2, 3: 4}");
  CHECK(read("(K\x01K\x02l"s) == "[1, 2]");
  CHECK(read("(K\x01K\x02"s + "d") == "{1: 2}");
  // Items that are added after those of another list.
  CHECK(read("](K\x01"s + "e](K\x02"s + "e0K\x03"s + "a") == "[1, 3]");
}

TEST_CASE("equal texts and equal small numbers of a pickle are one value") {
  const std::string bytes =
      "\x80\x02](\x8c\x01"s + "a\x8c\x01"s + "bX\x01\x00\x00\x00"s + "aK\x07M\x07\x00"s + "J\xff\xff\xff\xff"s + "e."s;
  const Pickle pickle{bytes};
  std::vector<PickleId> ids;
  pickle.each(pickle.root(), [&](PickleId id) { ids.push_back(id); });
  REQUIRE(ids.size() == 6);
  CHECK(ids[0] == ids[2]);
  CHECK(ids[0] != ids[1]);
  CHECK(ids[3] == ids[4]);
  CHECK(show(pickle, pickle.root()) == "['a', 'b', 'a', 7, 7, -1]");
}

TEST_CASE("a pickle's memo shares values, by explicit and by implicit number") {
  CHECK(read("]q\x05(K\x01"s + "e0h\x05"s) == "[1]");
  CHECK(read("]r\x05\x00\x00\x00(K\x01"s + "e0j\x05\x00\x00\x00"s) == "[1]");
  CHECK(read("\x8c\x01"s + "a\x94\x8c\x01"s + "b\x94(h\x01h\x00t"s) == "('b', 'a')");
}

TEST_CASE("pickle protocols 2 to 5 are read, others refused") {
  for (const int protocol : {2, 3, 4, 5}) CHECK(read("N", protocol) == "None");
  for (const int protocol : {1, 6})
    CHECK(complaint(Pickled::none().pickle(protocol)) ==
          "byte 0: protocol " + std::to_string(protocol) + "; this tidepool reads pickle protocols 2 to 5");
  CHECK(complaint("(lp0\n.") == "byte 0: no PROTO; expected a pickle of protocol 2 to 5");
}

TEST_CASE("a pickle's opcodes that need more than plain values are refused by name and position") {
  const auto refused = [](const std::string& bytes) {
    const std::string message = complaint(bytes), reason = " needs more than plain values; a snapshot holds only these";
    REQUIRE(message.ends_with(reason));
    return message.substr(0, message.size() - reason.size());
  };
  CHECK(refused("\x80\x04N0cos\nsystem\n."s) == "byte 4: opcode GLOBAL ('c')");
  CHECK(refused("\x80\x04NNR."s) == "byte 4: opcode REDUCE ('R')");
  CHECK(refused("\x80\x04N}b."s) == "byte 4: opcode BUILD ('b')");
  CHECK(refused("\x80\x05\x97."s) == "byte 2: opcode NEXT_BUFFER (0x97)");
  CHECK(refused("\x80\x04\x93."s) == "byte 2: opcode STACK_GLOBAL (0x93)");
  CHECK(refused("\x80\x04\x81."s) == "byte 2: opcode NEWOBJ (0x81)");
}

TEST_CASE("a damaged pickle is refused with the position") {
  CHECK(complaint("\x80\x04\x8f."s) == "byte 2: opcode 0x8f, which this tidepool does not read");  // EMPTY_SET
  CHECK(complaint("\x80\x04\xff."s) == "byte 2: opcode 0xff, which this tidepool does not read");
  CHECK(complaint("\x80\x04J\x01."s) == "byte 2: the pickle ends within BININT; 2 bytes are missing");
  CHECK(complaint("\x80\x04\x8c\xc8"s + "ab") ==
        "byte 2: the pickle ends within SHORT_BINUNICODE; 198 bytes are missing");
  CHECK(complaint("\x80\x04N"s) == "byte 3: the pickle ends; expected STOP");
  CHECK(complaint("\x80\x04."s) == "byte 2: STOP takes 1 from the stack; it has 0");
  CHECK(complaint("\x80\x04Na."s) == "byte 3: APPEND without a list below");
  CHECK(complaint("\x80\x04]Ne."s) == "byte 4: APPENDS without MARK");
  CHECK(complaint("\x80\x04}(Nu."s) == "byte 5: a dict gets a key without a value");
  CHECK(complaint("\x80\x04h\x07."s) == "byte 2: BINGET of 7, which no opcode has put there");
  CHECK(complaint("\x80\x04Nr\xff\xff\xff\x7f."s) ==
        "byte 3: LONG_BINPUT to 2147483647, more than the pickle has bytes");
  CHECK(complaint("\x80\x04\x95\x09\x00\x00\x00\x00\x00\x00\x00N."s) == "byte 2: FRAME of 9 bytes; 2 are left");
}

TEST_CASE("a file of several pickles is refused, since only the first one would be read, and zero bytes may follow") {
  CHECK(complaint("\x80\x04N.\x80\x04N."s) ==
        "byte 3: the pickle ends, and 4 more bytes follow; expected one pickle in a file");
  CHECK(complaint("\x80\x04N.\0\0"s).empty());
}

TEST_CASE("every prefix of a pickle is refused") {
  const std::string whole =
      Pickled::dict({{"a", Pickled::list({Pickled::whole(1), Pickled::tuple({Pickled::none()})})}}).pickle();
  CHECK(complaint(whole).empty());
  for (std::size_t length = 0; length < whole.size(); ++length) CHECK_FALSE(complaint(whole.substr(0, length)).empty());
}

TEST_CASE("a taker gets the elements of lists, and a pickle forgets what they alone consist of") {
  // [{'k': 70000, 'f': [shared]}, {...}] twice, in two batches; the text and the shared list come before.
  const std::string shared =
      "](K\x07"
      "e\x94"
      "0\x8c\x01"
      "k\x94"
      "0\x8c\x01"
      "f\x94"
      "0"s;
  const std::string element =
      "}\x94(h\x01J\x70\x11\x01\x00h\x02]\x94(h\x00"
      "eu"s;
  const std::string batches = "](" + element + element + "e(" + element + "e";
  const std::string bytes = Pickled::raw(shared + batches).pickle();
  std::vector<std::string> taken;
  std::vector<PickleId> ids;
  const Pickle::Taker take = [&](const Pickle& pickle, PickleId, std::span<const PickleId> elements, PickleId) {
    if (pickle.kind(elements[0]) != Kind::kDict) return false;
    for (const PickleId id : elements) taken.push_back(show(pickle, id));
    ids.push_back(elements[0]);
    return true;
  };
  const Pickle pickle{bytes, take};
  CHECK(taken == std::vector<std::string>(3, "{'k': 70000, 'f': [[7]]}"));
  CHECK(ids.front() == ids.back());  // the second batch has the memory of the first one
  CHECK(show(pickle, pickle.root()) == "[]");
  // What was within an element may not be used behind its list.
  const std::string later = Pickled::raw(shared + "(](" + element + "eh\x03t").pickle();
  CHECK(show(Pickle{later}, Pickle{later}.root()) == "([{'k': 70000, 'f': [[7]]}], {'k': 70000, 'f': [[7]]})");
  CHECK_THROWS_WITH((Pickle{later, take}), "byte " + std::to_string(later.size() - 4) +
                                               ": BINGET of 3, which was within an element of a list; expected it in "
                                               "that list only");
}

}  // namespace tidepool::pickle_test
