#include "policies/planning/search/repeated_pool.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// The part of a log that repeats, or all of it.
class Repeated {
 public:
  Repeated(const PlaceLog& log, std::size_t ops) : log_{log}, ops_{ops} {
    first_ = log.cycle ? log.cycle->first : PlaceLog::Begin{};
    last_ = log.cycle ? log.cycle->last : PlaceLog::Begin{log.lives.size(), log.answers.size()};
    for (const PlaceLog::Begin& each : log.begins)
      if (each.lives > first_.lives && each.lives < last_.lives) begins_.push_back(each.lives);
  }

  const PlaceLog::Begin& first() const { return first_; }
  const PlaceLog::Begin& last() const { return last_; }
  std::size_t iterations() const { return begins_.size() + 1; }
  RepeatedPool::Stay stay(std::size_t life, Bytes offset) const {
    return {offset, log_.lives[life].size, life < first_.lives ? 0 : moment(life), moment(log_.lives[life].end)};
  }

 private:
  /// The moment of a served request.
  std::size_t moment(std::size_t life) const {
    if (life >= last_.lives) return iterations() * ops_;
    const auto iteration = std::upper_bound(begins_.begin(), begins_.end(), life) - begins_.begin();
    const OpId before = log_.lives[life].before;
    return static_cast<std::size_t>(iteration) * ops_ + (before.valid() ? before.index() : ops_);
  }

  const PlaceLog& log_;
  std::size_t ops_;
  PlaceLog::Begin first_, last_;
  std::vector<std::size_t> begins_;  // of all iterations but the first: numbers of lives
};

/// By version: whether a draft says that its content begins on the host.
std::vector<bool> begins_on_host(const std::vector<Action>& draft, std::size_t versions) {
  std::vector<bool> begins(versions);
  for (const Action& action : draft) {
    if (action.before.valid() && action.before > OpId{0}) break;
    if (action.verb == Verb::kSwapOut) begins[action.subject] = true;
  }
  return begins;
}

}  // namespace

RepeatedPool::Places RepeatedPool::places_of(const PlaceLog& log, const std::vector<Bytes>& offsets, const Trace& trace,
                                             const std::vector<Action>& draft) {
  const std::size_t versions = trace.versions().size();
  const Repeated repeated{log, trace.ops().size()};
  Places places{std::vector<std::vector<Stay>>(versions), std::vector<bool>(versions), trace.ops().size(),
                repeated.iterations()};
  const std::vector<bool> on_host = begins_on_host(draft, versions);
  for (std::size_t b = 0; log.cycle && b < trace.buffers().size(); ++b) {
    if (!trace.buffers()[b].born_before || !trace.buffers()[b].outlives) continue;
    const std::size_t v = trace.first_version(BufferId{b}).index();
    const std::uint32_t life = log.cycle->at_start[b];
    if (life != PlaceLog::kNever)
      places.stays[v].push_back(repeated.stay(life, offsets[life]));
    else
      places.refused_once[v] = !on_host[v];
  }
  std::size_t life = repeated.first().lives;
  for (std::size_t i = repeated.first().answers; i < repeated.last().answers; ++i) {
    const std::size_t v = log.answers[i].version.index();
    if (log.answers[i].given) {
      places.stays[v].push_back(repeated.stay(life, offsets[life]));
      ++life;
    } else if (!log.cycle && places.stays[v].empty()) {
      places.refused_once[v] = trace.versions()[v].kind == VersionKind::kInitial;
    }
  }
  return places;
}

void RepeatedPool::start(const Trace&, Bytes capacity, Device&) {
  asked_.assign(places_->stays.size(), false);
  next_.assign(places_->stays.size(), 0);
  holes_.emplace(capacity);
  iteration_ = 0;
  before_ = OpId{0};
}

std::size_t RepeatedPool::moment_of(OpId before) {
  if (before < before_) {  // an iteration has begun
    iteration_ = (iteration_ + 1) % places_->iterations;
    if (iteration_ == 0) std::fill(next_.begin(), next_.end(), 0);
  }
  before_ = before;
  return iteration_ * places_->ops + (before.valid() ? before.index() : places_->ops);
}

std::optional<Block> RepeatedPool::place(const Request& request) {
  const std::size_t v = request.version.index(), now = moment_of(request.before);
  const bool is_first = !asked_[v];
  asked_[v] = true;
  if (is_first && places_->refused_once[v]) return {};
  const std::vector<Stay>& stays = places_->stays[v];
  std::size_t& next = next_[v];
  while (next < stays.size() && stays[next].first < now && stays[next].last <= now) ++next;
  const bool is_next = next < stays.size() && stays[next].first <= now;
  if (!is_next && (next == 0 || now >= stays[next - 1].last)) return {};
  const Stay& stay = stays[is_next ? next : next - 1];
  if (!holes_->place_at(stay.offset, stay.size)) return {};
  if (is_next) ++next;
  return Block{stay.offset, stay.size};
}

}  // namespace tidepool
