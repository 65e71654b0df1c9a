#include "traces/import/pickle.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

/// Opcodes that make or call objects, or take values from outside of the pickle; snapshots do not need them.
constexpr std::array<std::pair<unsigned char, std::string_view>, 15> kRefused{{{'c', "GLOBAL"},
                                                                               {0x93, "STACK_GLOBAL"},
                                                                               {'R', "REDUCE"},
                                                                               {'b', "BUILD"},
                                                                               {'i', "INST"},
                                                                               {'o', "OBJ"},
                                                                               {0x81, "NEWOBJ"},
                                                                               {0x92, "NEWOBJ_EX"},
                                                                               {'P', "PERSID"},
                                                                               {'Q', "BINPERSID"},
                                                                               {0x82, "EXT1"},
                                                                               {0x83, "EXT2"},
                                                                               {0x84, "EXT4"},
                                                                               {0x97, "NEXT_BUFFER"},
                                                                               {0x98, "READONLY_BUFFER"}}};

}  // namespace

/// Runs the opcodes that build plain values. Opcodes by Python's pickletools; pickle protocols: PEP 307, 3154, 574.
class PickleMachine {
 public:
  PickleMachine(Pickle& out, const Pickle::Taker& taker) : out_{out}, bytes_{out.bytes_}, taker_{taker} {
    out_.values_ = {{Kind::kNone, 0, 0}, {Kind::kBool, 0, 0}, {Kind::kBool, 0, 1}, {Kind::kTuple, 0, 0}};
  }

  void run() {
    if (bytes_.size() < 2 || byte(0) != 0x80) refuse("no PROTO; expected a pickle of protocol 2 to 5");
    if (byte(1) < 2 || byte(1) > 5) refuse("protocol {}; this tidepool reads pickle protocols 2 to 5", byte(1));
    at_ = 2;
    while (step()) {
    }
    if (at_ != bytes_.size() && bytes_.find_first_not_of('\0', at_) != std::string_view::npos)
      refuse("the pickle ends, and {} more bytes follow; expected one pickle in a file", bytes_.size() - at_);
  }

 private:
  using Kind = Pickle::Kind;
  static constexpr std::uint32_t kMost = Pickle::kNone;  // there are fewer values, elements, and bytes of a text
  static constexpr PickleId kNoneId = 0, kFalseId = 1, kTrueId = 2, kEmptyTupleId = 3;
  static constexpr PickleId kForgotten = Pickle::kNone - 1;  // in the memo; no value has this id

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{fmt::format(text, std::forward<Args>(args)...)}.at(fmt::format("byte {}", opcode_at_));
  }

  /// Runs one opcode. @return  false after STOP
  bool step() {
    opcode_at_ = at_;
    if (at_ == bytes_.size()) refuse("the pickle ends; expected STOP");
    const unsigned char opcode = byte(at_++);
    switch (opcode) {
      case 0x80:
        take(1, "PROTO");
        break;
      case 0x95:
        frame();
        break;
      case '.':
        out_.root_ = pop("STOP");
        return false;

      case 'N':
        push(kNoneId);
        break;
      case 0x88:
        push(kTrueId);
        break;
      case 0x89:
        push(kFalseId);
        break;
      case 'K':
        push_int(static_cast<std::int64_t>(little_endian(1, "BININT1")));
        break;
      case 'M':
        push_int(static_cast<std::int64_t>(little_endian(2, "BININT2")));
        break;
      case 'J':
        push_int(static_cast<std::int32_t>(little_endian(4, "BININT")));
        break;
      case 0x8a:
        long_integer(little_endian(1, "LONG1"), "LONG1");
        break;
      case 0x8b:
        long_integer(little_endian(4, "LONG4"), "LONG4");
        break;
      case 'G':
        real();
        break;

      case 0x8c:
        text(1, "SHORT_BINUNICODE");
        break;
      case 'X':
        text(4, "BINUNICODE");
        break;
      case 0x8d:
        text(8, "BINUNICODE8");
        break;
      case 'U':
        text(1, "SHORT_BINSTRING");
        break;
      case 'T':
        text(4, "BINSTRING");
        break;
      case 'C':
        text(1, "SHORT_BINBYTES");
        break;
      case 'B':
        text(4, "BINBYTES");
        break;
      case 0x8e:
        text(8, "BINBYTES8");
        break;

      case ')':
        push(kEmptyTupleId);
        break;
      case 0x85:
        collect(Kind::kTuple, top(1, "TUPLE1"));
        break;
      case 0x86:
        collect(Kind::kTuple, top(2, "TUPLE2"));
        break;
      case 0x87:
        collect(Kind::kTuple, top(3, "TUPLE3"));
        break;
      case 't':
        collect(Kind::kTuple, mark("TUPLE"));
        break;
      case 'l':
        collect(Kind::kList, mark("LIST"));
        break;
      case 'd':
        collect(Kind::kDict, mark("DICT"));
        break;
      case ']':
        push(add({Kind::kList, 0, 0}));
        break;
      case '}':
        push(add({Kind::kDict, 0, 0}));
        break;
      case 'a':
        append(Kind::kList, top(1, "APPEND"), "APPEND");
        break;
      case 'e':
        append_marked();
        break;
      case 's':
        append(Kind::kDict, top(2, "SETITEM"), "SETITEM");
        break;
      case 'u':
        append(Kind::kDict, mark("SETITEMS"), "SETITEMS");
        break;

      case '(':
        marks_.push_back(
            {stack_.size(), next_index(out_.values_), next_index(out_.items_), next_index(out_.chunks_), memo_.size()});
        break;
      case '0':
        pop("POP");
        break;
      case '1':
        stack_.resize(mark("POP_MARK"));
        break;
      case '2':
        push(stack_[top(1, "DUP")]);
        break;

      case 'q':
        memoize(little_endian(1, "BINPUT"), "BINPUT");
        break;
      case 'r':
        memoize(little_endian(4, "LONG_BINPUT"), "LONG_BINPUT");
        break;
      case 0x94:
        memoize(memo_count_, "MEMOIZE");
        break;
      case 'h':
        recall(little_endian(1, "BINGET"), "BINGET");
        break;
      case 'j':
        recall_all();
        break;

      default:
        unknown(opcode);
    }
    return true;
  }

  [[noreturn]] void unknown(unsigned char opcode) const {
    for (const auto& [refused, name] : kRefused) {
      if (refused != opcode) continue;
      const bool prints = opcode > 0x20 && opcode < 0x7f;
      refuse("opcode {} ({}) needs more than plain values; a snapshot holds only these", name,
             prints ? fmt::format("'{}'", static_cast<char>(opcode)) : fmt::format("0x{:02x}", opcode));
    }
    refuse("opcode 0x{:02x}, which this tidepool does not read", opcode);
  }

  unsigned char byte(std::size_t position) const { return static_cast<unsigned char>(bytes_[position]); }

  /// Steps over `count` bytes and returns their position.
  std::size_t take(std::uint64_t count, std::string_view opcode) {
    if (count > bytes_.size() - at_)
      refuse("the pickle ends within {}; {} bytes are missing", opcode, count - (bytes_.size() - at_));
    return std::exchange(at_, at_ + static_cast<std::size_t>(count));
  }

  std::uint64_t little_endian(std::size_t width, std::string_view opcode) {
    return little_endian_at(take(width, opcode), width);
  }
  std::uint64_t little_endian_at(std::size_t position, std::size_t width) const {
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;) value = value << 8 | byte(position + i);
    return value;
  }

  /// A frame states how many bytes may be read ahead; they must not exceed the rest of the file.
  void frame() {
    const std::uint64_t length = little_endian(8, "FRAME");
    if (length > bytes_.size() - at_) refuse("FRAME of {} bytes; {} are left", length, bytes_.size() - at_);
  }

  void long_integer(std::uint64_t width, std::string_view opcode) {
    const std::size_t position = take(width, opcode);
    if (width == 8) return push_int(static_cast<std::int64_t>(little_endian_at(position, 8)));  // times and addresses
    const bool negative = width > 0 && byte(position + width - 1) >= 0x80;
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    bool fits = true;
    for (std::size_t i = width; i-- > 0;) {
      if (i >= 8)
        fits = fits && byte(position + i) == (negative ? 0xff : 0);
      else
        value = value << 8 | byte(position + i);
    }
    fits = fits && (static_cast<std::int64_t>(value) < 0) == negative;
    if (fits) return push_int(static_cast<std::int64_t>(value));
    using Limits = std::numeric_limits<std::int64_t>;
    push(add({Kind::kHuge, 0, static_cast<std::uint64_t>(negative ? Limits::min() : Limits::max())}));
  }

  void real() {
    const std::size_t position = take(8, "BINFLOAT");
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 8; ++i) bits = bits << 8 | byte(position + i);
    push(add({Kind::kFloat, 0, bits}));
  }

  void text(std::size_t width, std::string_view opcode) {
    const std::uint64_t length = little_endian(width, opcode);
    const std::size_t position = take(length, opcode);
    if (length >= kMost) refuse("{} of {} bytes; expected fewer than {}", opcode, length, kMost);
    const auto [known, is_new] = texts_.try_emplace(bytes_.substr(position, length), PickleId{});
    if (is_new) known->second = newest_shared_ = add({Kind::kText, static_cast<std::uint32_t>(length), position});
    push(known->second);
  }

  /// The next index of a list of the pickle.
  template <class Item>
  std::uint32_t next_index(const std::vector<Item>& list, std::size_t added = 1) const {
    if (list.size() + added >= kMost) refuse("the pickle has more than {} values", kMost - 1);
    return static_cast<std::uint32_t>(list.size());
  }

  PickleId add(Pickle::Value value) {
    const PickleId id = next_index(out_.values_);
    out_.values_.push_back(value);
    return id;
  }
  void push(PickleId id) { stack_.push_back(id); }
  void push_int(std::int64_t value) {
    if (value < 0 || value >= static_cast<std::int64_t>(small_ints_.size()))
      return push(add({Kind::kInt, 0, static_cast<std::uint64_t>(value)}));
    PickleId& known = small_ints_[static_cast<std::size_t>(value)];
    if (known == Pickle::kNone) known = newest_shared_ = add({Kind::kInt, 0, static_cast<std::uint64_t>(value)});
    push(known);
  }

  PickleId pop(std::string_view opcode) {
    const PickleId id = stack_[top(1, opcode)];
    stack_.pop_back();
    return id;
  }

  /// The position of the topmost `count` values on the stack; all must be above the last mark.
  std::size_t top(std::size_t count, std::string_view opcode) const {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back().stack;
    if (stack_.size() - floor < count)
      refuse("{} takes {} from the stack; it has {}", opcode, count, stack_.size() - floor);
    return stack_.size() - count;
  }

  /// What there was when a mark was put on the stack.
  struct Mark {
    std::size_t stack;
    std::uint32_t values, items, chunks;
    std::size_t memo;
  };

  Mark pop_mark(std::string_view opcode) {
    if (marks_.empty()) refuse("{} without MARK", opcode);
    const Mark mark = marks_.back();
    marks_.pop_back();
    return mark;
  }
  /// The position of the first value above the last mark; removes the mark.
  std::size_t mark(std::string_view opcode) { return pop_mark(opcode).stack; }

  /// Replaces the values from `start` by a container of them.
  void collect(Kind kind, std::size_t start) {
    const PickleId id = add({kind, 0, 0});
    extend(id, start);
    push(id);
  }

  /// Moves the values from `start` to the end of the container below them.
  void append(Kind kind, std::size_t start, std::string_view opcode) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back().stack;
    if (start <= floor || out_.values_[stack_[start - 1]].kind != kind)
      refuse("{} without a {} below", opcode, kind == Kind::kList ? "list" : "dict");
    extend(stack_[start - 1], start);
  }

  /// Adds the values above the last mark to the list below it, unless the taker takes them.
  void append_marked() {
    const Mark mark = pop_mark("APPENDS");
    const std::size_t floor = marks_.empty() ? 0 : marks_.back().stack;
    out_.bytes_read_ = at_;
    const bool given = taker_ && mark.stack > floor && out_.values_[stack_[mark.stack - 1]].kind == Kind::kList;
    if (!given || !taker_(out_, stack_[mark.stack - 1], std::span{stack_}.subspan(mark.stack), mark.values))
      return append(Kind::kList, mark.stack, "APPENDS");
    if (can_forget(mark)) forget(mark);
    stack_.resize(mark.stack);
  }

  /// Whether all that came since a mark are the elements above it and what they alone consist of: numbers, and lists of
  /// older values.
  bool can_forget(const Mark& mark) {
    if (reordered_memo_ || newest_shared_ >= mark.values) return false;
    seen_.assign(out_.values_.size() - mark.values, false);
    std::size_t values = 0, items = 0, chunks = 0;
    const auto count = [&](PickleId id) {
      if (id < mark.values || seen_[id - mark.values]) return;
      seen_[id - mark.values] = true;
      ++values;
      const Kind kind = out_.values_[id].kind;
      if (kind != Kind::kTuple && kind != Kind::kList && kind != Kind::kDict) return;
      items += out_.size(id);
      chunks += out_.size(id) > 0;
    };
    for (const PickleId element : std::span{stack_}.subspan(mark.stack)) {
      count(element);
      if (out_.kind(element) == Kind::kDict)
        out_.each_entry(element, [&](PickleId key, PickleId value) { count(key), count(value); });
    }
    return values == seen_.size() && items == out_.items_.size() - mark.items &&
           chunks == out_.chunks_.size() - mark.chunks;
  }

  void forget(const Mark& mark) {
    out_.values_.resize(mark.values);
    out_.items_.resize(mark.items);
    out_.chunks_.resize(mark.chunks);
    for (std::size_t i = mark.memo; i < memo_.size(); ++i)
      if (memo_[i] != Pickle::kNone && memo_[i] >= mark.values) memo_[i] = kForgotten;
  }

  void extend(PickleId id, std::size_t start) {
    Pickle::Value& container = out_.values_[id];
    const auto first = next_index(out_.items_, stack_.size() - start);
    const auto added = static_cast<std::uint32_t>(stack_.size() - start);
    if (container.kind == Kind::kDict && added % 2 != 0) refuse("a dict gets a key without a value");
    if (added == 0) return;
    out_.items_.insert(out_.items_.end(), stack_.begin() + static_cast<std::ptrdiff_t>(start), stack_.end());
    stack_.resize(start);
    const auto last_chunk = static_cast<std::uint32_t>(container.payload);
    if (container.count > 0 && out_.chunks_[last_chunk].last == first) {
      out_.chunks_[last_chunk].last += added;
    } else {
      const std::uint32_t chunk = next_index(out_.chunks_);
      out_.chunks_.push_back({first, first + added, Pickle::kNone});
      if (container.count > 0) out_.chunks_[last_chunk].next = chunk;
      const std::uint64_t first_chunk = container.count > 0 ? container.payload >> 32 : chunk;
      container.payload = first_chunk << 32 | chunk;
    }
    container.count += added;
  }

  /// Stores the top of the stack. Writers number the memo one by one, so an index beyond the file's length is damaged.
  void memoize(std::uint64_t index, std::string_view opcode) {
    if (index >= bytes_.size()) refuse("{} to {}, more than the pickle has bytes", opcode, index);
    if (index < memo_.size())
      reordered_memo_ = true;
    else
      memo_.resize(static_cast<std::size_t>(index) + 1, Pickle::kNone);
    PickleId& place = memo_[static_cast<std::size_t>(index)];
    if (place == Pickle::kNone) ++memo_count_;
    place = stack_[top(1, opcode)];
  }

  /// Runs the LONG_BINGET that comes and those right behind it: the frames of a stack.
  void recall_all() {
    recall(little_endian(4, "LONG_BINGET"), "LONG_BINGET");
    std::size_t count = 0;
    while (bytes_.size() - at_ >= 5 * (count + 1) && byte(at_ + 5 * count) == 'j') ++count;
    const std::size_t first = stack_.size();
    stack_.resize(first + count);
    for (std::size_t i = 0; i < count; ++i, at_ += 5) {
      opcode_at_ = at_;
      stack_[first + i] = known(little_endian_at(at_ + 1, 4), "LONG_BINGET");
    }
  }

  void recall(std::uint64_t index, std::string_view opcode) { push(known(index, opcode)); }

  PickleId known(std::uint64_t index, std::string_view opcode) const {
    const PickleId id = index < memo_.size() ? memo_[static_cast<std::size_t>(index)] : Pickle::kNone;
    if (id < kForgotten) return id;
    if (id == kForgotten)
      refuse("{} of {}, which was within an element of a list; expected it in that list only", opcode, index);
    refuse("{} of {}, which no opcode has put there", opcode, index);
  }

  Pickle& out_;
  std::string_view bytes_;
  const Pickle::Taker& taker_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  std::vector<PickleId> stack_;
  std::vector<Mark> marks_;
  std::vector<PickleId> memo_;
  std::uint64_t memo_count_ = 0;
  bool reordered_memo_ = false;  // an index came that was not the next one
  PickleId newest_shared_ = 0;   // the last value that texts_ or small_ints_ refer to
  std::vector<bool> seen_;       // for can_forget
  // Snapshots repeat names and lines of frames for each event: one value stands for all that are equal.
  std::unordered_map<std::string_view, PickleId> texts_;
  std::vector<PickleId> small_ints_ = std::vector<PickleId>(1 << 16, Pickle::kNone);
};

Pickle::Pickle(std::string_view bytes, const Taker& taker) : bytes_{bytes} { PickleMachine{*this, taker}.run(); }

double Pickle::real(PickleId id) const { return std::bit_cast<double>(values_[id].payload); }

}  // namespace tidepool
